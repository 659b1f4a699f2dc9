// Copies all folders that a token opens into a map and a file. If anything is not proven, nothing is written.
// GRANDLIVRE_URL=https://... GRANDLIVRE_TOKEN=glv_firm_... GRANDLIVRE_SECRET=glv_secret_... go run firm.go firm.json
package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

type object = map[string]any
type table struct {
	Columns []string             `json:"columns"`
	Rows    map[string][]*string `json:"rows"`
}
type ledger struct {
	Cursor any              `json:"cursor"`
	Tables map[string]table `json:"tables"`
}

var names = strings.Fields("folders exercices journals accounts payments banks axes sections vats movements")
var signs = strings.NewReplacer(`\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v", `\\`, `\`)

func check(holds bool, otherwise ...any) {
	if !holds {
		log.Fatalf("Nothing was written: %.500s", fmt.Sprintln(otherwise...))
	}
}
func must[T any](value T, err error) T {
	check(err == nil, "the answer is cut, or there is none:", err)
	return value
}
func number(text string) int64 {
	value, err := strconv.ParseInt(strings.Replace(text, ".", "", 1), 10, 64)
	check(err == nil, err)
	return value
}
func copyFirm(lines *bufio.Reader) (map[string]ledger, map[string]string) {
	firm, refused, item, copied, open, digests := map[string]ledger{}, map[string]string{}, object{}, ledger{}, table{}, object{}
	society, name, kind, then, part, held, all, key, last := "", "", "", []string{}, [][]byte{}, 0, sha256.New(), 0, []int64{}
	isNew := func(id string) bool {
		_, isCopied := firm[id]
		_, isRefused := refused[id]
		return !isCopied && !isRefused
	}
	for kind != "whole" {
		line := bytes.Clone(must(lines.ReadSlice('\n')))
		if line[0] != '{' {
			part, held = append(part, line), held+len(line)
			check(held <= 1<<20 || len(part) == 1, "1 MiB of rows came without a proof")
			continue
		}
		item = object{}
		check(json.Unmarshal(line, &item) == nil, "no JSON:", string(line))
		for _, kind = range []string{"ledger", "table", "end", "refused", "whole", "rows"} {
			if item[kind] != nil {
				break
			}
		}
		if society == "" {
			then = []string{"ledger", "whole"}
		}
		check(kind == "refused" || slices.Contains(then, kind) && (kind == "rows" || len(part) == 0), "no place for", string(line))
		switch id := fmt.Sprint(item[kind]); kind {
		case "ledger":
			check(isNew(id) && item["since"] == nil, id, "comes twice, or in part")
			society, copied, digests, then = id, ledger{item["cursor"], map[string]table{}}, object{}, []string{"table"}
		case "table":
			name, all, last, then = names[len(copied.Tables)], sha256.New(), []int64{}, []string{"rows"}
			check(id == name, id, "comes instead of", name)
			open = table{strings.Fields(strings.Trim(fmt.Sprint(item["columns"]), "[]")), map[string][]*string{}}
			copied.Tables[name], key = open, max(0, slices.Index(open.Columns, "movement_id"))
		case "rows":
			text := bytes.Join(part, nil)
			proof := object{"rows": float64(len(part)), "sha256": fmt.Sprintf("%x", sha256.Sum256(text))}
			check(reflect.DeepEqual(item, proof) && (len(part) > 0 || len(open.Rows) == 0), name, "of", society, "is not that of its proof")
			for _, row := range part {
				columns, values := strings.Split(string(row[:len(row)-1]), "\t"), []*string{}
				for _, each := range columns {
					if each == `\N` {
						values = append(values, nil)
					} else {
						each = signs.Replace(each)
						values = append(values, &each)
					}
				}
				check(len(values) == len(open.Columns), "a row of", name, "lacks a column")
				before := last
				last = []int64{number(columns[0]), number(columns[key])}
				check(slices.Compare(before, last) < 0, name, last, "of", society, "is out of order")
				open.Rows[columns[key]] = values
			}
			all.Write(text)
			digests[name], then = fmt.Sprintf("%x", all.Sum(nil)), []string{map[bool]string{true: "end", false: "table"}[name == "movements"]}
			if len(part) > 0 {
				then, part, held = append(then, "rows"), nil, 0
			}
		case "end":
			for _, side := range []string{"debit", "credit"} {
				sum, at := number(fmt.Sprint(item[side])), slices.Index(open.Columns, side)
				for _, row := range open.Rows {
					check(at >= 0 && row[at] != nil, "no", side)
					sum -= number(*row[at])
				}
				check(sum == 0, side, "of", society, "is not its sum")
			}
			delete(digests, name)
			check(id == society && item["rows"] == float64(len(open.Rows)) && reflect.DeepEqual(item["tables"], digests), society, "ends otherwise")
			firm[society], society = copied, ""
		case "refused":
			check(isNew(id) && (society == id || society == "" && len(part) == 0), "no place for", string(line))
			refused[id], society, part, held = fmt.Sprint(item["code"], ": ", item["message"]), "", nil, 0
		}
	}
	_, err := lines.ReadByte()
	check(err == io.EOF && item["whole"] == float64(len(firm)) && item["refusals"] == float64(len(refused)), "the last line counts otherwise")
	return firm, refused
}
func main() {
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }} // The secret would follow.
	ask := func() *http.Response {
		request := must(http.NewRequest("POST", os.Getenv("GRANDLIVRE_URL")+"/api/v1/mad/ledgers/changes?version=1.0.0", strings.NewReader("{}")))
		request.Header = http.Header{"Authorization": {"Bearer " + os.Getenv("GRANDLIVRE_TOKEN")}, "X-Third-Party-Secret": {os.Getenv("GRANDLIVRE_SECRET")}, "Content-Type": {"application/json"}}
		return must(client.Do(request))
	}
	answer := ask()
	for ; answer.StatusCode == 429 || answer.StatusCode == 503; answer = ask() {
		time.Sleep(time.Duration(number(answer.Header.Get("Retry-After"))) * time.Second)
	}
	if answer.StatusCode != 200 {
		log.Fatalln(answer.Status, string(must(io.ReadAll(answer.Body))))
	}
	firm, refused := copyFirm(bufio.NewReaderSize(answer.Body, 16<<20+2))
	must(0, os.WriteFile(os.Args[1]+".part", must(json.Marshal(firm)), 0o600))
	must(0, os.Rename(os.Args[1]+".part", os.Args[1]))
	fmt.Println(len(firm), "folders")
	if len(refused) > 0 {
		log.Fatalln("not in it:", refused)
	}
}
