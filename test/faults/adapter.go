package faults

import (
	"regexp"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Adapter is what the matrix has to know of a kind.
type Adapter struct {
	// Scheme knows all kinds of the Resources.
	Scheme *runtime.Scheme
	// Scenarios are lives of the kind's objects. Their names are unique among all kinds.
	Scenarios []Scenario
	// Core matches the names of plans of one fault that always run. Those without faults do in any case.
	Core *regexp.Regexp
	// Interludes are what users do while the operator is down after a crash.
	Interludes []Interlude
	// Resources are those that users or the operator make objects of.
	Resources []Resource
	// Subject is the object that the scenarios are about.
	Subject Object
	// Finalizer keeps the subject while there is something of it outside.
	Finalizer string
	// Children are the objects that the subject has to own.
	Children []Object
	// FieldManager is the operator's.
	FieldManager string
	// Canaries are secrets that the operator is given: it must not tell them.
	Canaries []string

	// The functions from here to Meaning, and Compares, Usable and Mask, may be nil for a
	// kind without anything outside: there is nothing then that they would tell of.

	// MarkOf is what is on an object of the subject's resource, and on what is made
	// for it outside; empty when there is no such thing yet.
	MarkOf func(Metadata) string
	// OwnerOf is the uid of the object that a mark is made for.
	OwnerOf func(mark string) (uid string)
	// IDOf is the id of what the object says to have outside; empty for nothing.
	IDOf func(client.Object) string
	// Meaning says what a call to the outside is about.
	Meaning func(Event) Meaning

	// Open makes the outside of a run.
	Open func(*Execution) Outside
	// Recreate deletes the subject and makes it anew, waits until that is done, and
	// allows for the effects of a second life.
	Recreate func(*Execution)
	// Compares tells whether an operator that is at rest goes on to compare the
	// subject with the outside.
	Compares func(*Execution) bool
	// Usable says what is wrong with a revision of the subject that says it is
	// Ready. It is asked at the moment at which the revision is seen.
	Usable func(*Execution, client.Object) []string
	// Mask takes out of an object whatever may differ between two runs. What
	// Kubernetes makes up is gone already.
	Mask func(resource string, fields map[string]any)
	// Oracles are the kind's own: they judge a run that is over.
	Oracles []Oracle
}

// Resource is a resource whose objects are followed.
type Resource struct {
	// Name is the resource's, such as "secrets".
	Name string
	// Kind is the kind of its objects.
	Kind string
	// Reconciled is true for one that the operator has a controller for.
	Reconciled bool
	// List makes an empty list.
	List func() client.ObjectList
	// Labels are those of the objects that matter; none means all.
	Labels map[string]string
}

// Object names an object.
type Object struct{ Resource, Name string }

// String is the object's name in effects.
func (o Object) String() string { return o.Resource + "/" + o.Name }

// Outside is the part of a run's world that is not Kubernetes.
type Outside interface {
	// Start brings up an incarnation of the operator, whose requests all go through life.
	Start(t testing.TB, life *Life) Operator
	// Inventory is what there is.
	Inventory() []Item
	// Tally counts what came there.
	Tally() Tally
	// Masks are pairs: what differs between two runs, and what to put in its place.
	// Ids are masked by the order in which they were made, so that one more shows.
	Masks() []string
	// Close ends it.
	Close()
}

// Operator is a running incarnation of the operator.
type Operator interface {
	// Stop stops it and waits until it is gone.
	Stop(testing.TB)
}

// Item is something that exists outside.
type Item struct {
	// ID is how the outside calls it.
	ID string
	// Mark tells for which object it was made.
	Mark string
	// State is all there is to say of it.
	State string
}

// Tally is what came to the outside, by its own account.
type Tally struct {
	// Arrived counts requests by port and verb, as in "provider POST", without the harness's own.
	Arrived map[string]int
	// Done counts what was made and deleted, by the effect's key.
	Done map[string]int
}

// Meaning is what a call to the outside is about.
type Meaning struct {
	// Creates, Deletes tell what was asked for.
	Creates, Deletes bool
	// Mark is the one that the call bears.
	Mark string
	// ID is what it is about, as far as request and answer tell.
	ID string
	// Gone is true when the answer says that there is no such thing.
	Gone bool
}

// Scenario is what users do, in order.
type Scenario struct {
	Name string
	Acts []Act
	// Racing is true when two controllers are at work at the same time, so that
	// what is reported on the way to the same end differs from run to run.
	Racing bool
	// Setting is the adapter's.
	Setting any
}

// Act is something that a user does, and what is to come of it.
type Act struct {
	Name string
	Do   func(*Execution)
	// Until says what is still missing; empty when all is as it has to be.
	Until func(*Execution) string
	// Clocked is true when the number of reads in it is a matter of time.
	Clocked bool
	// Teardown is true for what is done in every run.
	Teardown bool
}

// While names what a user does while the operator is down.
type While string

// Nothing is done.
const Nothing While = ""

// Interlude is what a user does while the operator is down.
type Interlude struct {
	Name While
	// MakesSense tells whether there is something for the user to do it to after
	// the act with that number has begun.
	MakesSense func(s Scenario, act int) bool
	Do         func(*Execution)
}

// Oracle judges a run from its history, when it is over.
type Oracle struct {
	Name  string
	Judge func(*Execution) []string
}

// withDefaults is the adapter with a function in the place of each that is nil.
func (a Adapter) withDefaults() *Adapter {
	if a.MarkOf == nil {
		a.MarkOf = func(Metadata) string { return "" }
	}
	if a.OwnerOf == nil {
		a.OwnerOf = func(string) string { return "" }
	}
	if a.IDOf == nil {
		a.IDOf = func(client.Object) string { return "" }
	}
	if a.Meaning == nil {
		a.Meaning = func(Event) Meaning { return Meaning{} }
	}
	if a.Compares == nil {
		a.Compares = func(*Execution) bool { return false }
	}
	if a.Usable == nil {
		a.Usable = func(*Execution, client.Object) []string { return nil }
	}
	if a.Mask == nil {
		a.Mask = func(string, map[string]any) {}
	}
	return &a
}

// interlude is the one of that name.
func (a *Adapter) interlude(name While) Interlude {
	for _, i := range a.Interludes {
		if i.Name == name {
			return i
		}
	}
	return Interlude{Do: func(*Execution) {}}
}
