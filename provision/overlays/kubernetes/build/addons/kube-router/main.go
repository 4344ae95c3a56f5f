// kube-router's controller of network policies, without its router and its proxy: it makes a cluster's NetworkPolicy
// objects the rules of this node. Its options are kube-router's.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/cloudnativelabs/kube-router/v2/pkg/controllers/netpol"
	"github.com/cloudnativelabs/kube-router/v2/pkg/healthcheck"
	"github.com/cloudnativelabs/kube-router/v2/pkg/options"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	klog.InitFlags(nil)
	settings := options.NewKubeRouterConfig()
	settings.AddFlags(pflag.CommandLine)
	pflag.Parse()
	if err := flag.Set("logtostderr", "true"); err != nil {
		return err
	}
	if err := flag.Set("v", settings.VLevel); err != nil {
		return err
	}
	server, err := clientcmd.BuildConfigFromFlags(settings.Master, settings.Kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(server)
	if err != nil {
		return err
	}
	return enforce(client, settings)
}

func enforce(client kubernetes.Interface, settings *options.KubeRouterConfig) error {
	stop := make(chan struct{})
	known := informers.NewSharedInformerFactory(client, 0)
	pods := known.Core().V1().Pods().Informer()
	policies := known.Networking().V1().NetworkPolicies().Informer()
	namespaces := known.Core().V1().Namespaces().Informer()
	known.Start(stop)
	known.WaitForCacheSync(stop)

	rules, sets, err := netpol.NewIPTablesHandlers(settings)
	if err != nil {
		return err
	}
	controller, err := netpol.NewNetworkPolicyController(client, settings, pods, policies, namespaces, &sync.Mutex{}, rules, sets)
	if err != nil {
		return err
	}
	for informer, handler := range map[cache.SharedIndexInformer]cache.ResourceEventHandler{
		pods: controller.PodEventHandler, policies: controller.NetworkPolicyEventHandler, namespaces: controller.NamespaceEventHandler,
	} {
		if _, err := informer.AddEventHandler(handler); err != nil {
			return err
		}
	}

	var running sync.WaitGroup
	heartbeats := make(chan *healthcheck.ControllerHeartbeat)
	go func() {
		for range heartbeats {
		}
	}()
	running.Add(1)
	go controller.Run(heartbeats, stop, &running)
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	<-asked
	close(stop)
	running.Wait()
	return nil
}
