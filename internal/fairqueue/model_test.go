package fairqueue

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// model says in the plainest way what the queue is to do: one list, searched
// from end to end for each choice.
type model struct {
	workers, takers   int
	stopping          bool
	asked             []*modelPass // in the order in which they got their place
	running           []*modelPass
	served, servedLow map[string]int
	arrived           []string
	count, sinceLow   int
}

type modelState int

const (
	delayed modelState = iota
	held
	inLine
	atWork
	outside
	lineForSlot
)

type modelPass struct {
	request  reconcile.Request
	priority int
	event    bool
	state    modelState
	due      time.Time
	yields   int
}

func newModel(workers int) *model {
	return &model{workers: workers, served: map[string]int{}, servedLow: map[string]int{}}
}

func find(passes []*modelPass, r reconcile.Request) *modelPass {
	for _, p := range passes {
		if p.request == r {
			return p
		}
	}
	return nil
}

// line puts a pass at the end of the list.
func (m *model) line(p *modelPass, state modelState) {
	m.asked = slices.DeleteFunc(m.asked, func(x *modelPass) bool { return x == p })
	m.asked = append(m.asked, p)
	p.state = state
	if !slices.Contains(m.arrived, p.request.Namespace) {
		m.arrived = append(m.arrived, p.request.Namespace)
	}
}

func (m *model) ready(p *modelPass) {
	if find(m.running, p.request) != nil {
		p.state = held
		return
	}
	m.line(p, inLine)
}

func (m *model) add(r reconcile.Request, priority int, delay time.Duration, now time.Time) []string {
	if m.stopping {
		return nil
	}
	p := find(slices.DeleteFunc(slices.Clone(m.asked), func(p *modelPass) bool { return p.state == lineForSlot }), r)
	isNew := p == nil
	if isNew {
		p = &modelPass{request: r, priority: priority, state: delayed, due: now.Add(delay)}
		m.asked = append(m.asked, p)
	}
	wasLow := p.priority < 0
	p.priority, p.event = max(p.priority, priority), p.event || delay == 0
	switch {
	case p.state == held:
	case p.state == inLine:
		if wasLow && p.priority >= 0 {
			m.line(p, inLine)
		}
	case delay == 0:
		m.ready(p)
	case now.Add(delay).Before(p.due):
		p.due = now.Add(delay)
	}
	return m.handOut()
}

// fire has the delayed pass that is due first wait in line, if it is due.
func (m *model) fire(until time.Time) (told []string, more bool) {
	var first *modelPass
	for _, p := range m.asked {
		if p.state == delayed && !p.due.After(until) && (first == nil || p.due.Before(first.due)) {
			first = p
		}
	}
	if first == nil || m.stopping {
		return nil, false
	}
	m.ready(first)
	return m.handOut(), true
}

// choose is the pass to go on next: of those that may, the first of the fairest namespace.
func (m *model) choose() *modelPass {
	atWorkIn := map[string]int{}
	total := 0
	for _, p := range m.running {
		if p.state == atWork {
			atWorkIn[p.request.Namespace]++
			total++
		}
	}
	if total >= m.workers {
		return nil
	}
	room := func(p *modelPass) bool {
		n := atWorkIn[p.request.Namespace]
		return n == 0 || 3*n < m.workers-total
	}
	pick := func(may func(*modelPass) bool, rank func(ns string) [3]int) *modelPass {
		var best *modelPass
		for _, p := range m.asked {
			if may(p) && (best == nil || slices.Compare(ranks(rank, p), ranks(rank, best)) < 0) {
				best = p
			}
		}
		return best
	}
	fair := func(ns string) [3]int { return [3]int{atWorkIn[ns], m.served[ns], slices.Index(m.arrived, ns)} }
	inTurn := func(ns string) [3]int { return [3]int{m.servedLow[ns], slices.Index(m.arrived, ns)} }
	isLow := func(p *modelPass) bool { return m.takers > 0 && p.state == inLine && p.priority < 0 }
	isHigh := func(p *modelPass) bool { return m.takers > 0 && p.state == inLine && p.priority >= 0 }
	resumes := func(p *modelPass) bool { return p.state == lineForSlot }

	lowest := pick(isLow, inTurn)
	if m.takers > 0 && lowest == nil {
		m.sinceLow = 0
	}
	if lowest != nil && m.sinceLow >= 7 {
		return lowest
	}
	with := func(may func(*modelPass) bool) func(*modelPass) bool {
		return func(p *modelPass) bool { return may(p) && room(p) }
	}
	a, b := pick(with(resumes), fair), pick(with(isHigh), fair)
	switch {
	case a == nil && b == nil:
		return pick(with(isLow), fair)
	case a == nil, b != nil && slices.Compare(ranks(fair, b), ranks(fair, a)) < 0:
		return b
	default:
		return a
	}
}

func ranks(rank func(string) [3]int, p *modelPass) []int {
	r := rank(p.request.Namespace)
	return r[:]
}

// handOut is what goes on now.
func (m *model) handOut() (told []string) {
	for p := m.choose(); p != nil; p = m.choose() {
		m.count++
		m.sinceLow++
		m.served[p.request.Namespace] = m.count
		m.asked = slices.DeleteFunc(m.asked, func(x *modelPass) bool { return x == p })
		if p.state == lineForSlot {
			told = append(told, "resumed "+p.request.String())
		} else {
			if p.priority < 0 {
				m.servedLow[p.request.Namespace], m.sinceLow = m.count, 0
			}
			m.takers--
			m.running = append(m.running, p)
			told = append(told, fmt.Sprintf("got %s priority %d event %t", p.request, p.priority, p.event))
		}
		p.state = atWork
	}
	if m.stopping && !slices.ContainsFunc(m.asked, func(p *modelPass) bool { return p.state == inLine }) {
		for range m.takers {
			told = append(told, "shutdown")
		}
		m.takers = 0
	}
	return told
}

func (m *model) done(p *modelPass) (told []string) {
	m.running = slices.DeleteFunc(m.running, func(x *modelPass) bool { return x == p })
	told = m.letGo(p)
	p.state = delayed // it holds no slot
	if h := find(m.asked, p.request); h != nil && h.state == held {
		m.line(h, inLine)
	}
	told = append(told, m.handOut()...)
	if len(m.running) == 0 && !slices.ContainsFunc(m.asked, func(p *modelPass) bool { return p.state == inLine }) {
		m.served, m.servedLow, m.arrived = map[string]int{}, map[string]int{}, nil
	}
	return told
}

func (m *model) letGo(p *modelPass) (told []string) {
	if p.state == lineForSlot {
		m.asked = slices.DeleteFunc(m.asked, func(x *modelPass) bool { return x == p })
		told = append(told, "resumed "+p.request.String())
	}
	return told
}

func (m *model) yield(p *modelPass) []string {
	told := m.letGo(p)
	p.yields++
	p.state = outside
	return append(told, m.handOut()...)
}

func (m *model) resume(p *modelPass) []string {
	p.yields--
	if find(m.running, p.request) != p || p.yields > 0 || m.stopping {
		return []string{"resumed " + p.request.String()}
	}
	m.line(p, lineForSlot)
	return m.handOut()
}

func (m *model) shutDown() (told []string) {
	m.stopping = true
	for _, p := range m.running {
		if p.state == lineForSlot {
			told = append(told, m.letGo(p)...)
			p.state = outside // it goes on without a slot
		}
	}
	return append(told, m.handOut()...)
}

// yielded is a resume that was not called yet, and whose it is.
type yielded struct {
	pass   *modelPass
	resume func()
}

// run does to queue and model what the bytes say, and compares what they tell.
func run(t *testing.T, script []byte) {
	next := func() int {
		if len(script) == 0 {
			return 0
		}
		b := script[0]
		script = script[1:]
		return int(b)
	}
	workers := 1 + next()%8
	q, m := newQueue(workers), newModel(workers)
	events := make(chan string, 1000)
	var outsiders []yielded
	var log []string
	// compare holds what the queue did against what the model says.
	compare := func(what string, want []string) {
		synctest.Wait()
		var got []string
		for len(events) > 0 {
			got = append(got, <-events)
		}
		slices.Sort(got)
		slices.Sort(want)
		log = append(log, fmt.Sprintf("%s: %s", what, strings.Join(got, ", ")))
		if !slices.Equal(got, want) {
			t.Fatalf("after\n%s\nthe model says: %s", strings.Join(log, "\n"), strings.Join(want, ", "))
		}
		holders := 0
		for _, p := range m.running {
			if p.state == atWork {
				holders++
			}
		}
		if slots := look(q).Slots; slots != holders || holders > workers {
			t.Fatalf("after\n%s\n%d slots are held, the model says %d", strings.Join(log, "\n"), slots, holders)
		}
	}
	get := func() []string {
		m.takers++
		go func() {
			r, priority, shutdown := q.GetWithPriority()
			if shutdown {
				events <- "shutdown"
				return
			}
			events <- fmt.Sprintf("got %s priority %d event %t", r, priority, q.Event(r))
		}()
		return m.handOut()
	}
	resume := func(i int) []string {
		y := outsiders[i]
		outsiders = slices.Delete(outsiders, i, i+1)
		go func() {
			y.resume()
			events <- "resumed " + y.pass.request.String()
		}()
		return m.resume(y.pass)
	}
	step := 0
	for len(script) > 0 {
		step++
		switch op := next() % 16; {
		case op < 5:
			r := request(string(rune('a'+next()%4)), next()%4)
			priority := []int{0, 0, -100, 5, -1}[next()%5]
			var delay time.Duration
			if next()%3 == 0 {
				// No two are due at the same time.
				delay = time.Duration(1+next()%5)*time.Second + time.Duration(step)*time.Microsecond
			}
			q.AddWithOpts(priorityqueue.AddOpts{After: delay, Priority: &priority}, r)
			compare(fmt.Sprintf("add %s priority %d delay %s", r, priority, delay), m.add(r, priority, delay, time.Now()))
		case op < 9:
			if len(m.running)+m.takers < 12 {
				compare("get", get())
			}
		case op < 12:
			if len(m.running) > 0 {
				p := m.running[next()%len(m.running)]
				q.Done(p.request)
				compare("done "+p.request.String(), m.done(p))
			}
		case op < 13:
			if len(m.running) > 0 {
				p := m.running[next()%len(m.running)]
				outsiders = append(outsiders, yielded{p, q.Yield(p.request)})
				compare("yield "+p.request.String(), m.yield(p))
			}
		case op < 15:
			if len(outsiders) > 0 {
				i := next() % len(outsiders)
				compare("resume "+outsiders[i].pass.request.String(), resume(i))
			}
		default:
			until := time.Now().Add(time.Duration(1+next()%3) * time.Second)
			var want []string
			for {
				told, more := m.fire(until)
				want = append(want, told...)
				if !more {
					break
				}
			}
			<-time.After(time.Until(until))
			compare("time passes", want)
		}
	}
	if next(); step%2 == 0 {
		q.ShutDown()
		compare("shutdown", m.shutDown())
	}
	// Everything that was asked for comes, and nothing is left.
	for len(outsiders) > 0 {
		compare("resume at the end", resume(0))
	}
	for range 100 {
		for len(m.running) > 0 {
			p := m.running[0]
			q.Done(p.request)
			compare("done at the end "+p.request.String(), m.done(p))
		}
		if len(m.asked) == 0 || m.stopping && q.Len() == 0 {
			break
		}
		until := time.Now().Add(time.Minute)
		var want []string
		if m.takers == 0 {
			want = get()
		}
		for {
			told, more := m.fire(until)
			want = append(want, told...)
			if !more {
				break
			}
		}
		<-time.After(time.Minute)
		compare("the rest", want)
	}
	left := look(q)
	if m.stopping {
		left.Asked = 0 // delayed ones are dropped
	}
	if left != (inside{}) {
		t.Fatalf("after\n%s\nthere is left: %+v", strings.Join(log, "\n"), left)
	}
	if !m.stopping {
		q.ShutDown()
		compare("shutdown at the end", m.shutDown())
	}
}

func TestTheQueueDoesAsTheModelSays(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)})
		script := make([]byte, 20+seed%400)
		_, _ = random.Read(script)
		synctest.Test(t, func(t *testing.T) { run(t, script) })
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func FuzzTheQueueDoesAsTheModelSays(f *testing.F) {
	f.Add([]byte("a short script with a little of everything"))
	f.Fuzz(func(t *testing.T, script []byte) {
		synctest.Test(t, func(t *testing.T) { run(t, script[:min(len(script), 500)]) })
	})
}
