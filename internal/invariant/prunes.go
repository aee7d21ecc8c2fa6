package invariant

import (
	"slices"
	"strings"

	"github.com/skewproof/skewproof/internal/history"
)

// pruned is a kind of objects that a controller may delete while their owners exist.
type pruned struct {
	group, kind string
	// owner is the kind of the owner for which the controller manages them. It is "" if the
	// controller deletes objects of the kind whoever owns them.
	owner string
}

// prunes says what each controller of Kubernetes may delete while the owners of these objects
// exist, because it needs them no more: a ReplicaSet that is scaled down needs fewer Pods. The
// garbage collector and the namespace controller are missing: they delete what is left over, so no
// owner may exist. So is every other controller: it deletes nothing (k8s.io/kubernetes,
// pkg/controller; the names are those of cmd/kube-controller-manager/app).
var prunes = map[string][]pruned{
	"replicaset-controller":                               {{"", "Pod", "ReplicaSet"}},
	"replication-controller":                              {{"", "Pod", "ReplicationController"}},
	"deployment-controller":                               {{"apps", "ReplicaSet", "Deployment"}},
	"statefulset-controller":                              {{"", "Pod", "StatefulSet"}, {"apps", "ControllerRevision", "StatefulSet"}},
	"daemon-set-controller":                               {{"", "Pod", "DaemonSet"}, {"apps", "ControllerRevision", "DaemonSet"}},
	"job-controller":                                      {{"", "Pod", "Job"}},
	"cronjob-controller":                                  {{"batch", "Job", "CronJob"}},
	"ttl-after-finished-controller":                       {{"batch", "Job", ""}},
	"pod-garbage-collector":                               {{"", "Pod", ""}},
	"node-controller":                                     {{"", "Pod", ""}, {"", "Node", ""}},
	"endpoint-controller":                                 {{"", "Endpoints", "Service"}},
	"endpointslice-controller":                            {{"discovery.k8s.io", "EndpointSlice", "Service"}},
	"endpointslicemirroring-controller":                   {{"discovery.k8s.io", "EndpointSlice", "Endpoints"}},
	"resource-claim-controller":                           {{"resource.k8s.io", "ResourceClaim", "Pod"}},
	"resourcepoolstatusrequest-controller":                {{"resource.k8s.io", "ResourcePoolStatusRequest", ""}},
	"persistent-volume-binder":                            {{"", "PersistentVolume", ""}},
	"attachdetach-controller":                             {{"storage.k8s.io", "VolumeAttachment", ""}},
	"device-taint-eviction-controller":                    {{"", "Pod", ""}},
	"taint-eviction-controller":                           {{"", "Pod", ""}},
	"tokens-controller":                                   {{"", "Secret", ""}},
	"token-cleaner":                                       {{"", "Secret", ""}},
	"legacy-service-account-token-cleaner":                {{"", "Secret", ""}},
	"certificate-controller":                              {{"certificates.k8s.io", "CertificateSigningRequest", ""}},
	"podcertificaterequestcleaner":                        {{"certificates.k8s.io", "PodCertificateRequest", ""}},
	"storage-version-garbage-collector":                   {{"internal.apiserver.k8s.io", "StorageVersion", ""}},
	"kube-apiserver-serving-clustertrustbundle-publisher": {{"certificates.k8s.io", "ClusterTrustBundle", ""}},
	// These two are programs of their own.
	"kube-scheduler": {{"", "Pod", ""}}, // preemption
	"node":           {{"", "Pod", ""}, {"resource.k8s.io", "ResourceSlice", "Node"}},
}

// mayPrune reports whether the sender of a request may delete an object whose owners exist. A
// person or a program that is not part of Kubernetes may delete anything.
func mayPrune(q *history.Request, o history.Object) bool {
	name, part := partOfKubernetes(q)
	if !part {
		return true
	}
	return slices.ContainsFunc(prunes[name], func(p pruned) bool {
		return p.kind == o.Kind && p.group == groupOf(o.APIVersion) &&
			(p.owner == "" || slices.ContainsFunc(o.Owners, func(owner history.Owner) bool { return owner.Kind == p.owner }))
	})
}

// partOfKubernetes names the part of Kubernetes that sent a request; ok is false if another program
// sent it. With --use-service-account-credentials, each controller is a service account in
// kube-system. Otherwise they share one user, and only the end of the user agent names each of
// them.
func partOfKubernetes(q *history.Request) (name string, ok bool) {
	if name, ok := strings.CutPrefix(q.User, "system:serviceaccount:kube-system:"); ok {
		return name, true
	}
	switch {
	case q.User == "system:kube-controller-manager":
		return q.Agent[strings.LastIndexAny(q.Agent, "/:")+1:], true
	case q.User == "system:kube-scheduler":
		return "kube-scheduler", true
	case strings.HasPrefix(q.User, "system:node:"):
		return "node", true
	}
	return "", false
}
