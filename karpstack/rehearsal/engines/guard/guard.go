// Package guard keeps other users of the machine away from what a Karpenter controller serves.
//
// Upstream serves metrics, profiles and health on all addresses, to everybody: in a cluster the pod's network and
// network policies stand before them, and a process on a laptop has neither. Whoever imports this package gets
// managers that serve all of it at one address of the loopback interface, to those who know a secret. What the
// controllers do is not touched.
package guard

import (
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// TokenVariable names the environment variable that holds the secret: requests carry it as their bearer token.
const TokenVariable = "KARPSTACK_METRICS_TOKEN"

func init() {
	newManager := ctrl.NewManager
	ctrl.NewManager = func(config *rest.Config, options ctrl.Options) (ctrl.Manager, error) {
		token := os.Getenv(TokenVariable)
		if token == "" {
			return nil, fmt.Errorf("%s is empty, so everybody could read the metrics; set it to a secret", TokenVariable)
		}
		_, port, err := net.SplitHostPort(options.Metrics.BindAddress)
		if err != nil {
			return nil, fmt.Errorf("the address of the metrics, %q, has no port: %w", options.Metrics.BindAddress, err)
		}
		options.Metrics.BindAddress = net.JoinHostPort("127.0.0.1", port)
		options.Metrics.ListenConfig = net.ListenConfig{Control: sharePort}
		options.Metrics.FilterProvider = func(*rest.Config, *http.Client) (server.Filter, error) {
			return func(_ logr.Logger, next http.Handler) (http.Handler, error) { return require(token, next), nil }, nil
		}
		options.HealthProbeBindAddress = "0" // none: health is served beside the metrics
		manager, err := newManager(config, options)
		if err != nil {
			return nil, err
		}
		return serveHealth(manager)
	}
}

// require answers requests without the token itself.
func require(token string, next http.Handler) http.Handler {
	wanted := []byte("Bearer " + token)
	return http.HandlerFunc(func(writer http.ResponseWriter, request *http.Request) {
		if subtle.ConstantTimeCompare([]byte(request.Header.Get("Authorization")), wanted) != 1 {
			writer.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(writer, "a bearer token is needed", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(writer, request)
	})
}

// sharePort lets the port be taken although the rehearsal holds it, with the same option, so that nobody else does.
func sharePort(_, _ string, connection syscall.RawConn) error {
	var failed error
	err := connection.Control(func(descriptor uintptr) {
		failed = unix.SetsockoptInt(int(descriptor), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	if err != nil {
		return err
	}
	return failed
}

// guarded is a manager whose health checks are served with its metrics.
type guarded struct {
	ctrl.Manager
	healthy, ready *healthz.Handler
}

func serveHealth(manager ctrl.Manager) (ctrl.Manager, error) {
	made := guarded{
		manager,
		&healthz.Handler{Checks: map[string]healthz.Checker{}},
		&healthz.Handler{Checks: map[string]healthz.Checker{}},
	}
	for path, handler := range map[string]http.Handler{"/healthz": made.healthy, "/readyz": made.ready} {
		if err := manager.AddMetricsServerExtraHandler(path, http.StripPrefix(path, handler)); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// AddHealthzCheck adds a check; as upstream, before the manager starts.
func (g guarded) AddHealthzCheck(name string, check healthz.Checker) error {
	g.healthy.Checks[name] = check
	return nil
}

// AddReadyzCheck adds a check; as upstream, before the manager starts.
func (g guarded) AddReadyzCheck(name string, check healthz.Checker) error {
	g.ready.Checks[name] = check
	return nil
}
