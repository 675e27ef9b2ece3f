package observability_test

import (
	"testing"

	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

// TestKstatusUnderstandsEveryState asks the library by which Flux, kpt and
// others tell how an object fares.
func TestKstatusUnderstandsEveryState(t *testing.T) {
	t.Parallel()
	for _, s := range everyState(t) {
		t.Run(s.name, func(t *testing.T) {
			result, err := status.Compute(s.object)
			if err != nil {
				t.Fatal(err)
			}
			if result.Status != s.kstatus {
				t.Errorf("kstatus is %s (%s), want %s; the object is\n%v", result.Status, result.Message, s.kstatus, s.object.Object)
			}
		})
	}
}
