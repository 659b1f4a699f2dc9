package main

import (
	"context"
	_ "embed"

	"github.com/bytedance/sonic/encoder"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed movements.sql
var movementsSQL string

type year struct {
	schema, folder, exercice int64
}

// encode appends the JSON of a value.
func encode(to *[]byte, value any) error {
	return encoder.EncodeInto(to, value, encoder.NoValidateJSONMarshaler)
}

// render sends the year in chunks. It takes empty buffers from written.
func (y year) render(ctx context.Context, pool *pgxpool.Pool, written <-chan []byte, chunks chan<- []byte) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	dictionary, err := readDictionary(ctx, conn.Conn(), y.folder)
	if err != nil {
		return err
	}
	rows, err := conn.Query(ctx, movementsSQL, y.schema, y.folder, y.exercice)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := renderer{dictionary: dictionary, movement: movement{Analytics: []axis{}}, dates: map[int32]*string{}}
	chunk := append(<-written, '[')
	for isFirst := true; rows.Next(); isFirst = false {
		if !isFirst {
			chunk = append(chunk, ',')
		}
		if err := r.append(&chunk, rows.RawValues()); err != nil {
			return err
		}
		if len(chunk) < chunkBytes {
			continue
		}
		chunks <- chunk
		select {
		case chunk = <-written:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	chunks <- append(chunk, ']')
	return nil
}
