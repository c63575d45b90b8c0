// Typed clients of client-go with their defaults, which send protobuf: `KUBECONFIG NAMESPACE` creates, changes, evicts, watches and deletes objects of
// each kind, and prints each failure.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
)

func to[T any](value T) *T { return &value }

var (
	background = context.Background()
	failures   int
	moment     = metav1.NewTime(time.Unix(1000000000, 0).UTC())
)

func check(what string, err error) {
	if err != nil {
		failures++
		fmt.Printf("%s: %v\n", what, err)
	}
}

func expect(what string, holds bool) {
	if !holds {
		check(what, fmt.Errorf("is not so"))
	}
}

func pod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"a": "b"}},
		Spec: v1.PodSpec{RestartPolicy: "Never", AutomountServiceAccountToken: to(false), NodeSelector: map[string]string{"d": "e"},
			Volumes: []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{EmptyDir: &v1.EmptyDirVolumeSource{SizeLimit: to(resource.MustParse("1Gi"))}}},
				{Name: "w", VolumeSource: v1.VolumeSource{ConfigMap: &v1.ConfigMapVolumeSource{LocalObjectReference: v1.LocalObjectReference{Name: "cm"}, DefaultMode: to(int32(420))}}}},
			SecurityContext: &v1.PodSecurityContext{SupplementalGroups: []int64{7, 8}},
			Tolerations:     []v1.Toleration{{Operator: "Exists", TolerationSeconds: to(int64(3)), Effect: "NoExecute"}},
			Containers: []v1.Container{{Name: "c", Image: "none", Command: []string{"sh", "-c", "true"}, Args: []string{""},
				Env: []v1.EnvVar{{Name: "E"}, {Name: "S", ValueFrom: &v1.EnvVarSource{SecretKeyRef: &v1.SecretKeySelector{
					LocalObjectReference: v1.LocalObjectReference{Name: "s"}, Key: "k"}}}},
				Resources:      v1.ResourceRequirements{Limits: v1.ResourceList{"cpu": resource.MustParse("500m")}},
				ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{HTTPGet: &v1.HTTPGetAction{Path: "/", Port: intstr.FromString("http")}}, PeriodSeconds: 2},
				LivenessProbe:  &v1.Probe{ProbeHandler: v1.ProbeHandler{TCPSocket: &v1.TCPSocketAction{Port: intstr.FromInt32(8080)}}},
				Ports:          []v1.ContainerPort{{ContainerPort: 80, Name: "http"}}, VolumeMounts: []v1.VolumeMount{{Name: "v", MountPath: "/v"}}}}},
	}
}

func service(name string) *v1.Service {
	return &v1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.ServiceSpec{ClusterIP: "None", Selector: map[string]string{"a": "b"},
		Ports: []v1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}}}}
}

func claim(name string) *v1.PersistentVolumeClaim {
	return &v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PersistentVolumeClaimSpec{
		AccessModes: []v1.PersistentVolumeAccessMode{"ReadWriteOnce"}, StorageClassName: to(""),
		Resources: v1.VolumeResourceRequirements{Requests: v1.ResourceList{"storage": resource.MustParse("1Gi")}}}}
}

func event(name, namespace string) *v1.Event {
	return &v1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}, InvolvedObject: v1.ObjectReference{Kind: "Pod", Name: "p", Namespace: namespace},
		Reason: "R", Message: "M", Count: 2, FirstTimestamp: moment, LastTimestamp: moment, Type: "Normal"}
}

func pods(c *kubernetes.Clientset, namespace string) {
	client := c.CoreV1().Pods(namespace)
	meant := pod("one").Spec
	made, err := client.Create(background, pod("one"), metav1.CreateOptions{})
	check("create a pod", err)
	if err != nil {
		return
	}
	container, wanted := made.Spec.Containers[0], meant.Containers[0]
	expect("its command", reflect.DeepEqual(container.Command, wanted.Command) && reflect.DeepEqual(container.Args, wanted.Args))
	expect("its environment", reflect.DeepEqual(container.Env, wanted.Env))
	expect("its limits", container.Resources.Limits.Cpu().String() == "500m")
	expect("its probe", container.ReadinessProbe != nil && container.ReadinessProbe.HTTPGet.Port == intstr.FromString("http"))
	expect("its groups", made.Spec.SecurityContext != nil && reflect.DeepEqual(made.Spec.SecurityContext.SupplementalGroups, []int64{7, 8}))
	expect("its volumes", len(made.Spec.Volumes) == 2 && made.Spec.Volumes[0].EmptyDir.SizeLimit.String() == "1Gi" && made.Spec.Volumes[1].ConfigMap.Name == "cm")
	// While the pod runs, its status changes, too.
	check("update a pod", retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		found, err := client.Get(background, "one", metav1.GetOptions{})
		if err == nil {
			found.Labels["c"] = "d"
			_, err = client.Update(background, found, metav1.UpdateOptions{})
		}
		return err
	}))
	changed, err := client.Get(background, "one", metav1.GetOptions{})
	expect("its label", err == nil && changed.Labels["c"] == "d")
	made.Labels["c"] = "e"
	_, err = client.Update(background, made, metav1.UpdateOptions{})
	expect("an update of an old version is a conflict", errors.IsConflict(err))
	err = client.Delete(background, "one", metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions("other")})
	expect("a deletion of another uid is a conflict", errors.IsConflict(err))
	check("delete a pod", client.Delete(background, "one", *metav1.NewDeleteOptions(0)))
	_, err = client.Create(background, pod("two"), metav1.CreateOptions{})
	check("create a pod", err)
	check("evict a pod", client.EvictV1(background, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: "two", Namespace: namespace},
		DeleteOptions: metav1.NewDeleteOptions(0)}))
	_, err = client.Create(background, pod("three"), metav1.CreateOptions{})
	check("create a pod", err)
	check("delete all pods", client.DeleteCollection(background, *metav1.NewDeleteOptions(0), metav1.ListOptions{LabelSelector: "a=b"}))
	left, err := client.List(background, metav1.ListOptions{})
	check("list pods", err)
	expect("no pod is left", err == nil && len(left.Items) == 0)
}

func others(c *kubernetes.Clientset, namespace string) {
	core, options := c.CoreV1(), metav1.CreateOptions{}
	made, err := core.Services(namespace).Create(background, service("s"), options)
	check("create a Service", err)
	expect("its target port", err == nil && made.Spec.Ports[0].TargetPort == intstr.FromInt32(8080))
	check("delete a Service", core.Services(namespace).Delete(background, "s", metav1.DeleteOptions{}))
	bound, err := core.PersistentVolumeClaims(namespace).Create(background, claim("c"), options)
	check("create a claim", err)
	expect("its size", err == nil && bound.Spec.Resources.Requests.Storage().String() == "1Gi")
	check("delete a claim", core.PersistentVolumeClaims(namespace).Delete(background, "c", metav1.DeleteOptions{}))
	seen, err := core.Events(namespace).Create(background, event("e", namespace), options)
	check("create an event", err)
	expect("its time", err == nil && seen.FirstTimestamp.Equal(&moment))
	_, err = core.ConfigMaps(namespace).Create(background, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Data: map[string]string{"k": ""},
		BinaryData: map[string][]byte{"b": {0, 255}}}, options)
	check("create a ConfigMap", err)
	kept, err := core.ConfigMaps(namespace).Get(background, "m", metav1.GetOptions{})
	check("get a ConfigMap", err)
	value, found := kept.Data["k"]
	expect("its data", found && value == "" && reflect.DeepEqual(kept.BinaryData["b"], []byte{0, 255}))
	secret, err := core.Secrets(namespace).Create(background, &v1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "s"}, StringData: map[string]string{"k": "v"}}, options)
	check("create a Secret", err)
	expect("its data", err == nil && string(secret.Data["k"]) == "v")
}

// Checks an informer, which most controllers use: a list, and a watch that continues from it.
func informer(c *kubernetes.Clientset, namespace string) {
	client := c.CoreV1().ConfigMaps(namespace)
	bounded, cancel := context.WithTimeout(background, time.Minute)
	defer cancel()
	changes := make(chan string, 100)
	factory := informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithNamespace(namespace))
	configs := factory.Core().V1().ConfigMaps()
	configs.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { changes <- "added " + o.(*v1.ConfigMap).Name },
		UpdateFunc: func(_, o any) { changes <- "changed " + o.(*v1.ConfigMap).Name + " to " + o.(*v1.ConfigMap).Data["k"] },
		DeleteFunc: func(o any) { changes <- "deleted " + o.(*v1.ConfigMap).Name },
	})
	wait := func(wanted string) {
		for {
			select {
			case seen := <-changes:
				if seen == wanted {
					return
				}
			case <-bounded.Done():
				check("the informer sees "+wanted, bounded.Err())
				return
			}
		}
	}
	factory.Start(bounded.Done())
	expect("the informer has its list", cache.WaitForCacheSync(bounded.Done(), configs.Informer().HasSynced))
	_, err := client.Create(background, &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "seen"}, Data: map[string]string{"k": "1"}}, metav1.CreateOptions{})
	check("create a ConfigMap", err)
	wait("added seen")
	_, err = client.Patch(background, "seen", types.StrategicMergePatchType, []byte(`{"data":{"k":"2"}}`), metav1.PatchOptions{})
	check("patch a ConfigMap", err)
	wait("changed seen to 2")
	kept, err := configs.Lister().ConfigMaps(namespace).Get("seen")
	expect("the informer keeps it", err == nil && kept.Data["k"] == "2")
	check("delete a ConfigMap", client.Delete(background, "seen", *metav1.NewPreconditionDeleteOptions(string(kept.UID))))
	wait("deleted seen")
}

func main() {
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check("read the kubeconfig", err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	client, err := kubernetes.NewForConfig(config)
	check("make a client", err)
	pods(client, os.Args[2])
	others(client, os.Args[2])
	informer(client, os.Args[2])
	if failures > 0 {
		os.Exit(1)
	}
}
