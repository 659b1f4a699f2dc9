// The year of the bench in Go: net/http, pgx, sonic. See ../README.md.
//
// `DATABASE_URL=… SCHEMA_ID=… FOLDER_ID=… EXERCICE_ID=… year-in-go` listens and prints its address.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"runtime/debug"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	chunkBytes = 256 * 1024
	// Room for the movement that completes a chunk: a longer one makes its buffer grow.
	movementBytes = 8 * 1024
	chunksWaiting = 4
)

func main() {
	// Little is alive: at 100 percent the collector would run for every four megabytes.
	debug.SetGCPercent(400)
	pool, err := pgxpool.NewWithConfig(context.Background(), connection())
	if err != nil {
		log.Fatal(err)
	}
	year := year{id("SCHEMA_ID"), id("FOLDER_ID"), id("EXERCICE_ID")}
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { answer(w, r, pool, year) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("http://%s/\n", listener.Addr())
	go func() {
		// The bench has ended when standard input does.
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	log.Fatal(http.Serve(listener, nil))
}

// answer renders in one goroutine and writes in another. Buffers go back to the first.
func answer(w http.ResponseWriter, r *http.Request, pool *pgxpool.Pool, year year) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	written := make(chan []byte, chunksWaiting)
	for range chunksWaiting {
		written <- make([]byte, 0, chunkBytes+movementBytes)
	}
	chunks := make(chan []byte, chunksWaiting)
	failed := make(chan error, 1)
	go func() {
		failed <- year.render(ctx, pool, written, chunks)
		close(chunks)
	}()
	w.Header().Set("Content-Type", "application/json")
	for chunk := range chunks {
		if _, err := w.Write(chunk); err != nil {
			cancel()
			break
		}
		written <- chunk[:0]
	}
	if err := <-failed; err != nil {
		log.Print(err)
		// Breaks the answer off.
		panic(http.ErrAbortHandler)
	}
}

// connection has the tenant and the settings with which the service reads: see ../peer.ts.
func connection() *pgxpool.Config {
	config, err := pgxpool.ParseConfig(setting("DATABASE_URL"))
	if err != nil {
		log.Fatal(err)
	}
	config.MaxConns = 8
	// Results are binary, as with prepared statements, but each query is planned for its parameters.
	config.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	for name, value := range map[string]string{
		"application_name":                "grandlivre bench",
		"search_path":                     "grandlivre",
		"grandlivre.schema_id":            setting("SCHEMA_ID"),
		"max_parallel_workers_per_gather": "0",
		"random_page_cost":                "1.1",
		"work_mem":                        "32MB",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	return config
}

func id(name string) int64 {
	number, err := strconv.ParseInt(setting(name), 10, 64)
	if err != nil {
		log.Fatal(err)
	}
	return number
}

func setting(name string) string {
	value, ok := os.LookupEnv(name)
	if !ok {
		log.Fatalf("%s is missing: the bench starts this program", name)
	}
	return value
}
