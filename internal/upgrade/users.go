package upgrade

import "github.com/skewproof/skewproof/reports"

// everything are the users of every resource that discovery lists.
var everything = []reports.PlanUser{
	{Who: "garbage collector", Does: "deletes objects whose owners are gone; asks for owners by their kind",
		Source: "k8s.io/kubernetes pkg/controller/garbagecollector"},
	{Who: "namespace controller", Does: "deletes the objects in a namespace that is deleted",
		Source: "k8s.io/kubernetes pkg/controller/namespace/deletion"},
	{Who: "resource quota controller", Does: "counts objects", Source: "k8s.io/kubernetes pkg/controller/resourcequota"},
	{Who: "kubectl, Helm, Argo CD and other clients", Does: "find resources by discovery", Source: "k8s.io/client-go restmapper"},
}

// kubelet is the user that is a node.
const kubelet = "kubelet"

// name is a resource in any version of its group.
type name struct{ group, resource string }

const (
	resourceGroup  = "resource.k8s.io"
	admissionGroup = "admissionregistration.k8s.io"
	certificates   = "certificates.k8s.io"
)

func kubernetes(who, does, path string) reports.PlanUser {
	return reports.PlanUser{Who: who, Does: does, Source: "k8s.io/kubernetes " + path}
}

var (
	allocation = []reports.PlanUser{
		kubernetes("kube-scheduler", "allocates devices to pods", "pkg/scheduler/framework/plugins/dynamicresources"),
		kubernetes("kube-controller-manager", "makes and frees claims of pods", "pkg/controller/resourceclaim"),
		kubernetes(kubelet, "prepares devices for pods", "pkg/kubelet/cm/dra"),
		{Who: "DRA drivers", Does: "publish devices", Source: "k8s.io/dynamic-resource-allocation"},
	}
	services = []reports.PlanUser{
		kubernetes("kube-apiserver", "allocates addresses of Services", "pkg/registry/core/service/ipallocator"),
		kubernetes("kube-controller-manager", "keeps ranges that are in use", "pkg/controller/servicecidrs"),
	}
	admission = func(path string) []reports.PlanUser {
		return []reports.PlanUser{{Who: "kube-apiserver", Does: "applies the policies to requests",
			Source: "k8s.io/apiserver pkg/admission/plugin/policy/" + path}}
	}
	election = []reports.PlanUser{{Who: "kube-controller-manager and kube-scheduler",
		Does:   "elect a leader, where coordinated leader election is on",
		Source: "k8s.io/client-go tools/leaderelection/leasecandidate.go"}}
)

// users are the users of resources that differ between recorded versions, as read in the source of
// v1.37.1, or of the last version that has the resource.
var users = map[name][]reports.PlanUser{
	{admissionGroup, "mutatingadmissionpolicies"}:         admission("mutating"),
	{admissionGroup, "mutatingadmissionpolicybindings"}:   admission("mutating"),
	{admissionGroup, "validatingadmissionpolicies"}:       admission("validating"),
	{admissionGroup, "validatingadmissionpolicybindings"}: admission("validating"),
	{"authentication.k8s.io", "selfsubjectreviews"}: {{Who: "kubectl", Does: "asks who the user is (`kubectl auth whoami`)",
		Source: "k8s.io/kubectl pkg/cmd/auth/whoami.go"}},
	{"coordination.k8s.io", "leasecandidates"}: election,
	{"flowcontrol.apiserver.k8s.io", "flowschemas"}: {{Who: "kube-apiserver", Does: "limits requests",
		Source: "k8s.io/apiserver pkg/util/flowcontrol"}},
	{"internal.apiserver.k8s.io", "storageversions"}: {kubernetes("kube-controller-manager", "removes entries of servers that are gone",
		"pkg/controller/storageversiongc")},
	{"networking.k8s.io", "ipaddresses"}:      services,
	{"networking.k8s.io", "servicecidrs"}:     services,
	{resourceGroup, "deviceclasses"}:          allocation[:1],
	{resourceGroup, "resourceclaims"}:         allocation,
	{resourceGroup, "resourceclaimtemplates"}: allocation[1:2],
	{resourceGroup, "resourceslices"}:         {allocation[0], allocation[3]},
	{resourceGroup, "resourcepoolstatusrequests"}: {kubernetes("kube-controller-manager", "answers the requests",
		"pkg/controller/resourcepoolstatusrequest")},
	{"storage.k8s.io", "csinodes"}: {kubernetes(kubelet, "says which volumes a node can have",
		"pkg/volume/csi/nodeinfomanager")},
	{"storagemigration.k8s.io", "storageversionmigrations"}: {kubernetes("kube-controller-manager", "writes stored objects again",
		"pkg/controller/storageversionmigrator")},
	{"", "pods"}: {kubernetes(kubelet, "runs them, and resizes them in place", "pkg/kubelet/allocation")},
	{certificates, "clustertrustbundles"}: {
		kubernetes(kubelet, "mounts trust bundles in pods", "pkg/kubelet/clustertrustbundle"),
		kubernetes("kube-controller-manager", "publishes the authority of the servers",
			"pkg/controller/certificates/clustertrustbundlepublisher"),
	},
	{certificates, "podcertificaterequests"}: {
		kubernetes(kubelet, "requests certificates for pods", "pkg/kubelet/podcertificate"),
		kubernetes("kube-controller-manager", "removes old requests", "pkg/controller/certificates/cleaner"),
	},
	{resourceGroup, "devicetaintrules"}: {
		kubernetes("kube-controller-manager", "evicts pods from tainted devices", "pkg/controller/devicetainteviction"),
		allocation[0],
	},
	{"storage.k8s.io", "volumeattributesclasses"}: {
		kubernetes("kube-controller-manager", "keeps classes that are in use", "pkg/controller/volume/vacprotection"),
		{Who: "external-resizer and external-provisioner", Does: "change and make volumes", Source: "github.com/kubernetes-csi/external-resizer"},
	},
}

func usersOf(k key) []reports.PlanUser { return users[name{k.group, k.resource}] }
