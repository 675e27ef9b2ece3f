package localcluster

import "avalonhosting.example/bucketoperator/localcluster/internal/process"

// Program is a program beside the cluster. It is tied to this process as the
// cluster's own are: where the system can, it is killed when this one ends.
type Program struct{ process *process.Process }

// StartProgram starts the program at path, which is called name in errors. What
// it writes is appended to the file logPath. Of this process's environment it
// gets PATH and TMPDIR alone.
func StartProgram(name, path string, args []string, logPath string) (*Program, error) {
	p, err := process.Start(name, path, args, logPath)
	if err != nil {
		return nil, err
	}
	return &Program{process: p}, nil
}

// Ended is closed when the program is gone.
func (p *Program) Ended() <-chan struct{} { return p.process.Ended() }

// Err tells why a program that is gone ended, with the end of its log.
func (p *Program) Err() error { return p.process.EndedError() }

// Stop asks the program to end, and kills it if that takes too long. When it
// returns, the program is gone.
func (p *Program) Stop() error { return p.process.Stop() }
