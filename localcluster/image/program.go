package image

import (
	"bufio"
	"bytes"
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"slices"
	"strings"
)

// mergedFolders are links into /usr where /usr is merged, as in Debian since 12.
var mergedFolders = []string{"/bin", "/lib", "/lib64", "/sbin"}

// AddPrograms adds programs of this machine, by path or by name, at their own
// paths, with the dynamic loader and the shared libraries that they link, and
// with the links of a merged /usr, so that /bin/x is there if /usr/bin/x is. What
// a program opens while it runs (plugins, locales, time zones, certificates) it
// does not tell: add that with [Tree.AddFromMachine].
//
// Libraries must be where the loader finds them without /etc/ld.so.cache, as all
// of Debian's are.
func (t *Tree) AddPrograms(ctx context.Context, programs ...string) error {
	for _, folder := range mergedFolders {
		if err := t.addMerged(folder); err != nil {
			return fmt.Errorf("adding %s to the image: %w", folder, err)
		}
	}
	for _, program := range programs {
		if err := t.addProgram(ctx, program); err != nil {
			return fmt.Errorf("adding the program %s to the image: %w", program, err)
		}
	}
	return nil
}

// addMerged adds a folder that is a link on this machine.
func (t *Tree) addMerged(folder string) error {
	_, err := t.addLinks(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // /lib64 is not everywhere
	}
	return err
}

func (t *Tree) addProgram(ctx context.Context, program string) error {
	file, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	libraries, err := sharedLibraries(ctx, file)
	if err != nil {
		return err
	}
	for _, name := range append(libraries, file) {
		if err := t.AddFromMachine(name); err != nil {
			return err
		}
	}
	return nil
}

// sharedLibraries returns the paths of all that must be there for the program to
// start: nothing for a static one.
func sharedLibraries(ctx context.Context, program string) ([]string, error) {
	dynamic, err := isDynamic(program)
	if err != nil || !dynamic {
		return nil, err
	}
	output, err := exec.CommandContext(ctx, "ldd", program).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("asking ldd for its libraries: %w: %s", err, bytes.TrimSpace(output))
	}
	return parseLdd(string(output))
}

// isDynamic tells whether a program asks for a dynamic loader. ldd itself could
// tell by its message only.
func isDynamic(program string) (bool, error) {
	file, err := elf.Open(program)
	if err != nil {
		return false, fmt.Errorf("reading it: %w; a script is added with AddFromMachine, and its interpreter as a program", err)
	}
	defer file.Close()
	return slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }), nil
}

// parseLdd reads the paths in what ldd prints:
//
//	linux-vdso.so.1 (0x00007ffd3a5f2000)
//	libm.so.6 => /lib/x86_64-linux-gnu/libm.so.6 (0x00007f1c5a2c1000)
//	/lib64/ld-linux-x86-64.so.2 (0x00007f1c5a6e8000)
//
// The first is in the kernel, and has no path.
func parseLdd(output string) ([]string, error) {
	var paths []string
	for lines := bufio.NewScanner(strings.NewReader(output)); lines.Scan(); {
		name, found, resolved := strings.Cut(strings.TrimSpace(lines.Text()), " => ")
		if !resolved {
			found = name
		}
		if found == "not found" {
			return nil, fmt.Errorf("its library %s is not on this machine", name)
		}
		if path, _, _ := strings.Cut(found, " "); strings.HasPrefix(path, "/") {
			paths = append(paths, path)
		}
	}
	return paths, nil
}
