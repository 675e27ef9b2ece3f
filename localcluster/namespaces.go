package localcluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const namespacePoll = 50 * time.Millisecond

var namespaceResource = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// waitForNamespaces returns when the namespace "default" is there: the API
// server makes it a moment after it says that it is ready.
func waitForNamespaces(ctx context.Context, config *rest.Config) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, namespacePoll, true, func(ctx context.Context) (bool, error) {
		_, err := client.Resource(namespaceResource).Get(ctx, metav1.NamespaceDefault, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("waiting for namespace %s: %w", metav1.NamespaceDefault, err)
	}
	return nil
}
