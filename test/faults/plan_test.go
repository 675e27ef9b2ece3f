package faults

import "testing"

func TestAPlansNameSaysWhatGoesWrong(t *testing.T) {
	t.Parallel()
	create := Effect{Port: HTTP, Verb: "POST", Kind: "buckets", Occurrence: 1}
	status := Effect{Verb: "PATCH", Kind: "storagebuckets", Key: "photos/status", Occurrence: 2}
	for want, plan := range map[string]Plan{
		"life/none":                                          {Scenario: "life", Fault: None},
		"life/lost/provider_POST_buckets#1":                  {Scenario: "life", Fault: Lost, At: create},
		"life/error/PATCH_storagebuckets/photos/status#2":    {Scenario: "life", Fault: Failed, At: status},
		"life/crash-after/provider_POST_buckets#1+delete":    {Scenario: "life", Fault: CrashAfter, At: create, While: "delete"},
		"life/lost/provider_POST_buckets#1/then/crash-after": {Scenario: "life", Fault: Lost, At: create, Then: CrashAfter},
		"life/frozen/secrets@3":                              {Scenario: "life", Fault: None, Stale: Stale{Resource: "secrets", Frame: 3, How: Frozen}},
		"life/outage/records_PUT_records/{key}#1":            {Scenario: "life", Fault: Outage, At: Effect{Port: "records", Verb: "PUT", Kind: "records", Key: "{key}", Occurrence: 1}},
	} {
		if got := plan.Name(); got != want {
			t.Errorf("got the name %s, want %s", got, want)
		}
	}
}

// TestTheSecondFaultWaitsForTheRecovery holds that the second fault of a pair
// befalls the successor of an operator that died, and not what that one still
// had under way; and only what changes something.
func TestTheSecondFaultWaitsForTheRecovery(t *testing.T) {
	t.Parallel()
	write := Call{Effect: Effect{Verb: "PATCH", Kind: "things", Key: "a"}}
	other := Call{Effect: Effect{Verb: "PUT", Kind: "secrets", Key: "b"}}
	read := Call{Effect: Effect{Verb: "GET", Kind: "things", Key: "a"}, Read: true}
	for name, first := range map[string]Fault{"a crash": CrashAfter, "a lost answer": Lost} {
		at := write.Effect
		at.Occurrence = 1
		gate := newGate(Plan{Fault: first, At: at, Then: Failed})
		life := gate.begin(0)
		event, fault := gate.enter(life, write, "", nil)
		if fault != first {
			t.Fatalf("%s: the first write gets %q", name, fault)
		}
		if _, fault := gate.enter(life, other, "", nil); fault != None {
			t.Errorf("%s: what was under way at the same time gets %q", name, fault)
		}
		gate.leave(event)
		if first.crashes() {
			if _, fault := gate.enter(life, other, "", nil); fault != None {
				t.Errorf("%s: the dead operator's last write gets %q", name, fault)
			}
			life = gate.begin(0)
		}
		for _, step := range []struct {
			call Call
			want Fault
		}{{read, None}, {other, Failed}, {write, None}} {
			if _, fault := gate.enter(life, step.call, "", nil); fault != step.want {
				t.Errorf("%s: then %s gets %q, want %q", name, step.call.Effect.Name(), fault, step.want)
			}
		}
	}
}
