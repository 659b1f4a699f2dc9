package main

import (
	"context"
	_ "embed"

	"github.com/bytedance/sonic/encoder"
	"github.com/jackc/pgx/v5/pgxpool"
)

//go:embed movements.sql
var movementsSQL string

//go:embed entries.sql
var entriesSQL string

type year struct {
	schema, folder, exercice int64
}

// encode appends the JSON of a value.
func encode(to *[]byte, value any) error {
	return encoder.EncodeInto(to, value, encoder.NoValidateJSONMarshaler)
}

// render sends the year in chunks. It takes empty buffers from written. Movements and entries come over two connections,
// and are merged by entry id.
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
	other, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer other.Release()
	entries, err := other.Query(ctx, entriesSQL, y.schema, y.folder, y.exercice)
	if err != nil {
		return err
	}
	defer entries.Close()
	rows, err := conn.Query(ctx, movementsSQL, y.schema, y.folder, y.exercice)
	if err != nil {
		return err
	}
	defer rows.Close()
	r := renderer{
		dictionary: dictionary, entries: entries, movement: movement{Analytics: []axis{}}, dates: map[int32]*string{},
	}
	chunk := append(<-written, '[')
	isFirst := true
	for rows.Next() {
		row := rows.RawValues()
		isValidated, err := r.goTo(integer(row[ofEntryID]))
		if err != nil {
			return err
		}
		if !isValidated {
			continue
		}
		if !isFirst {
			chunk = append(chunk, ',')
		}
		isFirst = false
		if err := r.append(&chunk, row); err != nil {
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
	if err := entries.Err(); err != nil {
		return err
	}
	chunks <- append(chunk, ']')
	return nil
}
