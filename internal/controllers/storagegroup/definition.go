// Package storagegroup is the API group storage.avalonhosting.example.
package storagegroup

import (
	"math/rand/v2"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	storagev1 "avalonhosting.example/bucketoperator/api/storage/v1"
	"avalonhosting.example/bucketoperator/internal/controllers/bucketproviderconfig"
	"avalonhosting.example/bucketoperator/internal/controllers/index"
	"avalonhosting.example/bucketoperator/internal/controllers/outside"
	"avalonhosting.example/bucketoperator/internal/controllers/storagebucket"
	"avalonhosting.example/bucketoperator/internal/engine/child"
	"avalonhosting.example/bucketoperator/internal/operator"
)

// Definition is the group's: a BucketProviderConfig makes no sense without
// StorageBuckets.
var Definition = operator.Definition{
	Name:         "storagebucket",
	GroupVersion: storagev1.GroupVersion,
	AddToScheme:  storagev1.AddToScheme,
	Kinds: []operator.Kind{
		{Object: &storagev1.StorageBucket{}, List: &storagev1.StorageBucketList{}, Transform: storagebucket.Traits.Compact},
		{Object: &storagev1.BucketProviderConfig{}, List: &storagev1.BucketProviderConfigList{}, Transform: bucketproviderconfig.Traits.Compact},
	},
	Cached: []operator.Cached{
		{Object: &corev1.Secret{}, Select: operator.Own, Transform: child.Compact},
		{Object: &corev1.Service{}, Select: operator.Own, Transform: child.Compact},
		{Object: &discoveryv1.EndpointSlice{}, Select: operator.Own, Transform: child.Compact},
		{Object: outside.NewSecretMetadata(), Select: operator.Metadata, Finalizer: storagev1.ConfigFinalizer},
	},
	Indexes: index.Indexes,
	SetUp:   setUp,
}

func setUp(s *operator.Setup) error {
	access := outside.Access{
		Live: s.Live, Metadata: s.Metadata, Providers: s.Options.Providers, Configs: outside.NewConfigReader(s.Live),
	}
	bucket := &storagebucket.Kind{
		Client: s.Client, Access: access, DefaultEndpoint: s.Options.DefaultEndpoint,
		MinPoll: s.Options.Poll.Min, MaxPoll: s.Options.Poll.Max, Random: rand.Float64,
	}
	if err := storagebucket.SetUp(s, bucket); err != nil {
		return err
	}
	return bucketproviderconfig.SetUp(s, &bucketproviderconfig.Kind{Client: s.Client, Access: access})
}
