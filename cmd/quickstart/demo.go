package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

const (
	// untilPoll is how often kubectl is asked again for what is to come.
	untilPoll = 200 * time.Millisecond
	// untilTimeout is how long that may take: far longer than it does.
	untilTimeout = time.Minute
)

// chapter is a part of the demo.
type chapter struct {
	title string
	tell  func(*story)
}

var chapters = []chapter{
	{"A bucket is asked for", tellCreate},
	{"It becomes Ready", tellReady},
	{"It grows", tellResize},
	{"Its Secret is deleted, then spoilt; both times it comes back", tellHeal},
	{"It is deleted, here and at the provider", tellDelete},
}

// demo walks a bucket through its life.
func demo(ctx context.Context, s *stack) error {
	t := &story{ctx: ctx, stack: s}
	for i, c := range chapters {
		fmt.Fprintf(s.options.stdout, "\n%d. %s\n", i+1, c.title)
		c.tell(t)
		if t.err != nil {
			return t.err
		}
	}
	fmt.Fprintln(s.options.stdout, "\nThat was all. `make run` starts the same and stays up, for you to try things.")
	return nil
}

// story is the demo while it is told. Once something has failed, nothing more
// is done.
type story struct {
	ctx   context.Context // of the whole demo
	stack *stack
	err   error
}

// kubectl does what a person would type, and prints both that and the answer.
func (t *story) kubectl(line string, args ...string) string {
	if t.err != nil {
		return ""
	}
	t.prompt("kubectl " + line)
	if len(args) == 0 {
		args = strings.Fields(line)
	}
	answer, err := t.stack.kubectl.run(t.ctx, args...)
	t.show(answer)
	t.err = err
	return strings.TrimSpace(answer)
}

// until asks again and again, as a person would, until the answer is the one
// wanted, and prints that one.
func (t *story) until(wanted, line string, args ...string) {
	if t.err != nil {
		return
	}
	t.prompt("kubectl " + line)
	var answer string
	err := wait.PollUntilContextTimeout(t.ctx, untilPoll, untilTimeout, true, func(ctx context.Context) (bool, error) {
		var err error
		answer, err = t.stack.kubectl.run(ctx, args...)
		return answer == wanted, err
	})
	t.show(answer)
	if err != nil {
		t.err = fmt.Errorf("kubectl %s: wanted %q, got %q: %w", line, wanted, answer, err)
	}
}

func (t *story) prompt(command string) { fmt.Fprintf(t.stack.options.stdout, "\n   $ %s\n", command) }

func (t *story) show(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprintf(t.stack.options.stdout, "   %s\n", strings.TrimRight(line, "\n"))
	}
}

func tellCreate(t *story) {
	t.kubectl("apply -f " + sample)
	// Whatever it says first: on a slow machine that may be Active.
	t.kubectl("wait --for=jsonpath='{.status.phase}' sbucket/media-assets --timeout=60s",
		"wait", "--for=jsonpath={.status.phase}", "sbucket/media-assets", "--timeout=60s")
	t.kubectl("get sbucket media-assets")
}

func tellReady(t *story) {
	t.kubectl("wait --for=condition=Ready sbucket/media-assets --timeout=60s")
	t.kubectl("get sbucket media-assets")
	t.kubectl("describe secret media-assets-access")
	t.kubectl("get service media-assets")
}

func tellResize(t *story) {
	const patch = `{"spec":{"sizeGB":200}}`
	t.kubectl("patch sbucket media-assets --type=merge -p '"+patch+"'",
		"patch", "sbucket", "media-assets", "--type=merge", "-p", patch)
	if t.stack.options.minimal {
		t.kubectl("wait --for=condition=SizeApplied=False sbucket/media-assets --timeout=60s")
		const message = `{.status.conditions[?(@.type=="SizeApplied")].message}`
		t.kubectl("get sbucket media-assets -o jsonpath='"+message+"'", "get", "sbucket", "media-assets", "-o", "jsonpath="+message)
		return
	}
	t.until("200", "get sbucket media-assets -o jsonpath='{.status.sizeGB}'",
		"get", "sbucket", "media-assets", "-o", "jsonpath={.status.sizeGB}")
}

func tellHeal(t *story) {
	id := t.kubectl("get sbucket media-assets -o jsonpath='{.status.id}'",
		"get", "sbucket", "media-assets", "-o", "jsonpath={.status.id}")
	t.kubectl("delete secret media-assets-access")
	t.kubectl("wait --for=create secret/media-assets-access --timeout=60s")
	const spoilt = `{"stringData":{"id":"spoilt"}}`
	t.kubectl("patch secret media-assets-access --type=merge -p '"+spoilt+"'",
		"patch", "secret", "media-assets-access", "--type=merge", "-p", spoilt)
	t.until(id, "get secret media-assets-access -o go-template='{{.data.id|base64decode}}'",
		"get", "secret", "media-assets-access", "-o", "go-template={{.data.id|base64decode}}")
}

func tellDelete(t *story) {
	t.kubectl("delete sbucket media-assets --timeout=60s")
	t.kubectl("wait --for=delete secret/media-assets-access --timeout=60s")
	t.kubectl("get sbucket,secret,service -l app.kubernetes.io/managed-by=bucketoperator")
	if t.err != nil {
		return
	}
	t.prompt("curl " + bucketsURL(t.stack.provider))
	buckets, count, err := bucketsOf(t.ctx, t.stack.provider)
	t.show(buckets)
	switch {
	case err != nil:
		t.err = err
	case count > 0:
		t.err = fmt.Errorf("the provider still has %d bucket(s)", count)
	}
}
