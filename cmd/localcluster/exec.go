package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"avalonhosting.example/bucketoperator/localcluster"
)

// execute runs a command with a cluster of its own and returns its exit code.
// The ctx bounds the start of the cluster; the command itself gets the signals.
func execute(ctx context.Context, args []string, stderr io.Writer) (code int, err error) {
	flags, shared := newFlags("exec", false, stderr)
	opts, err := shared.parse(flags, args)
	if err != nil {
		return 0, err
	}
	command := flags.Args()
	if len(command) == 0 {
		return 0, usageError{"exec needs a command: localcluster exec [FLAGS] -- COMMAND..."}
	}

	// From before the start, so that no signal is lost between it and the command.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)

	cluster, err := localcluster.Start(ctx, opts)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, cluster.Stop()) }()

	//nolint:noctx // signals end it, in order: see attend
	cmd := exec.Command(commandPath(command[0], cluster.Assets()), command[1:]...)
	cmd.Env = cluster.Environ()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("starting %s: %w", command[0], err)
	}
	return attend(cmd, signals)
}

// commandPath finds kubectl where the cluster has it: exec.Command looks into
// this process's PATH, not into the command's.
func commandPath(name string, assets localcluster.Assets) string {
	if name == "kubectl" && assets.Kubectl != "" {
		return assets.Kubectl
	}
	return name
}

// attend waits for the command. It passes on the first signal, and kills the
// command at the second.
func attend(cmd *exec.Cmd, signals <-chan os.Signal) (int, error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	onTerminal := term.IsTerminal(int(os.Stdin.Fd()))
	for first := true; ; {
		select {
		case err := <-done:
			return commandCode(cmd, err)
		case received := <-signals:
			if !first {
				received = os.Kill
			}
			first = false
			if received == os.Interrupt && onTerminal {
				// The terminal has sent it to the command, too; many programs
				// take another for an order to give up at once.
				continue
			}
			if err := cmd.Process.Signal(received); err != nil && !errors.Is(err, os.ErrProcessDone) {
				return 0, fmt.Errorf("passing on %s: %w", received, err)
			}
		}
	}
}

// commandCode is the exit code of a command that is done, as a shell tells it.
func commandCode(cmd *exec.Cmd, err error) (int, error) {
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		return 0, fmt.Errorf("waiting for %s: %w", cmd.Path, err)
	}
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return cmd.ProcessState.ExitCode(), nil
}
