package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// sample is the bucket that is made: no provider, so the operator's default one.
var sample = filepath.Join("config", "samples", "storage_v1_storagebucket.yaml")

const sampleName = "media-assets"

const welcome = `
The operator is up, and so is bucket %[1]s. In another terminal, in this folder:

  export KUBECONFIG=%[2]s PATH=%[3]s:$PATH
  kubectl get sbucket
  kubectl describe sbucket %[1]s
  kubectl get secret %[1]s-access -o yaml

One more bucket, that grows:

  sed 's/%[1]s/my-bucket/' %[4]s | kubectl apply -f -
  kubectl wait --for=condition=Ready sbucket/my-bucket --timeout=60s
  kubectl patch sbucket my-bucket --type=merge -p '{"spec":{"sizeGB":200}}'

What the provider has: curl %[5]s
What they all say:     %[6]s/*.log
Ctrl-C ends it all and leaves nothing behind.
`

// stay applies the sample, says what to type next, and stays until ctx
// ends, which is no failure.
func stay(ctx context.Context, s *stack) error {
	s.say("Making a bucket of " + sample)
	if _, err := s.kubectl.run(ctx, "apply", "-f", sample); err != nil {
		return err
	}
	if _, err := s.kubectl.run(ctx, "wait", "--for=condition=Ready", "sbucket/"+sampleName, "--timeout=60s"); err != nil {
		return err
	}
	table, err := s.kubectl.run(ctx, "get", "sbucket")
	if err != nil {
		return err
	}
	fmt.Fprintf(s.options.stdout, "\n%s", table)
	fmt.Fprintf(s.options.stdout, welcome, sampleName, s.kubectl.kubeconfig, filepath.Dir(s.kubectl.link),
		sample, bucketsURL(s.provider), s.folder.path)
	<-ctx.Done()
	s.say("Stopping")
	return nil
}
