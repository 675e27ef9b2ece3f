package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"avalonhosting.example/bucketoperator/localcluster/node"
)

// nodeInside never returns in a process that is a part of a node.
func nodeInside() { node.Inside() }

// runNode runs the subcommands of node.
func runNode(ctx context.Context, args []string, stdout, stderr io.Writer) (code int, err error) {
	if len(args) == 0 {
		return 0, usageError{"node needs a subcommand: up, exec or build"}
	}
	switch command, rest := args[0], args[1:]; command {
	case "up":
		return 0, nodeUp(ctx, rest, stdout, stderr)
	case "exec":
		return nodeExec(ctx, rest, stderr)
	case "build":
		if len(rest) > 0 {
			return 0, usageError{"node build takes no arguments"}
		}
		_, err := node.Build(ctx, stderr)
		return 0, err
	default:
		return 0, usageError{fmt.Sprintf("unknown subcommand %q of node: want up, exec or build", command)}
	}
}

// nodeOptions parses the flags that node up and node exec share, and returns what
// is left of args.
func nodeOptions(command string, args []string, stderr io.Writer) (node.Options, []string, error) {
	opts := node.Options{Progress: stderr}
	flags := flag.NewFlagSet("localcluster node "+command, flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&opts.Dir, "dir", "", "`folder` for data and logs, kept at the end (default: a temporary one, removed at the end)")
	flags.Func("image", "`file` of an image archive to load; may be repeated", func(path string) error {
		opts.Images = append(opts.Images, path)
		return nil
	})
	flags.Func("crds", "`path` of a CRD file, or of a folder of them, to install; may be repeated (default: none)", func(path string) error {
		opts.CRDs = append(opts.CRDs, path)
		return nil
	})
	flags.StringVar(&opts.AuditLog, "audit-log", "", "`file` to log all API requests to")
	flags.StringVar(&opts.AuditPolicy, "audit-policy", "", "`file` with the policy of the audit log (default: metadata of every request)")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return opts, nil, err
		}
		return opts, nil, usageError{err.Error()}
	}
	return opts, flags.Args(), nil
}

// nodeUp starts a node and stops it when ctx ends, which is no failure.
func nodeUp(ctx context.Context, args []string, stdout, stderr io.Writer) (err error) {
	opts, rest, err := nodeOptions("up", args, stderr)
	if err != nil {
		return err
	}
	if len(rest) > 0 {
		return usageError{fmt.Sprintf("node up takes no arguments, but got %q", rest)}
	}
	n, err := node.Start(ctx, opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	fmt.Fprintf(stdout, "The node is up; Ctrl-C stops it. Enter it from another terminal, as root, by:\n  %s\nLogs are in %[2]s/logs and %[2]s/control-plane/logs.\n",
		n.EnterCommand(), n.Dir())
	if err := n.Wait(ctx); err != nil {
		return err
	}
	fmt.Fprintln(stderr, "localcluster: stopping the node")
	return nil
}

// nodeExec runs a command in a node of its own and returns its exit code.
// The ctx bounds the start of the node; the command itself gets the signals.
func nodeExec(ctx context.Context, args []string, stderr io.Writer) (code int, err error) {
	opts, command, err := nodeOptions("exec", args, stderr)
	if err != nil {
		return 0, err
	}
	if len(command) == 0 {
		return 0, usageError{"node exec needs a command: localcluster node exec [FLAGS] -- COMMAND..."}
	}
	// From before the start, so that no signal is lost between it and the command.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	n, err := node.Start(ctx, opts)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()

	path, err := n.LookPath(command[0])
	if err != nil {
		return 0, err
	}
	//nolint:noctx // signals end it, in order: see attend
	cmd := exec.Command(path, command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := n.StartCommand(cmd); err != nil {
		return 0, fmt.Errorf("starting %s: %w", command[0], err)
	}
	return attend(cmd, signals)
}
