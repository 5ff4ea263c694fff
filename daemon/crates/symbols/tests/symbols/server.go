package server

// func commented() {}
import (
	"fmt"
	"net/http"
)

type Handler func(w http.ResponseWriter) error

type Server struct {
	name string
	hook func(int) struct{ a int }
}

const Limit = 3

var (
	defaults = map[string]func() error{
		"a": func() error { return nil },
	}
	template = `
func notThere() {
`
)

func (s *Server) Run(a struct{ b int },
	more ...interface{}) (err error) {
	brace := '{'
	if x := s.name; x != "" {
		return fmt.Errorf("} %v %v", brace, func() int { return 1 }())
	}
	switch v := more[0].(type) {
	case string:
		_ = v
	}
	return nil
}

func (s Server) Set() map[string]struct{} {
	return map[string]struct{}{}
}

func local() {
	type inner struct {
		a int
	}
	_ = inner{a: 1}
}

func assembly(x int) int

type Pair[K comparable, V any] struct {
	Key K
}

func (p *Pair[K, V]) Swap() interface{ Do() } { return nil }

type Doer interface {
	Do(n int) error
}
