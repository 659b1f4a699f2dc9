package main

import "encoding/json"

// A movement as partners see it. Text and numbers belong to the row and to the renderer, until the next row.
type movement struct {
	ProducerID    int64           `json:"producerId,string"`
	Description   string          `json:"description"`
	DueDate       *string         `json:"dueDate"`
	FreeNumber    *string         `json:"freeNumber"`
	InvoiceNumber string          `json:"invoiceNumber"`
	Value         value           `json:"value"`
	Entry         json.RawMessage `json:"entry"` // an entry, encoded once for all its movements
	Attachments   json.RawMessage `json:"attachments"`
	Account       *account        `json:"account"`
	Payment       *payment        `json:"payment"`
	Analytics     []axis          `json:"analytics"`
	Lettering     lettering       `json:"lettering"`
}

type value struct {
	Credit json.Number `json:"credit"`
	Debit  json.Number `json:"debit"`
	Amount json.Number `json:"amount"`
}

type axis struct {
	ProducerID int64   `json:"producerId,string"`
	Code       string  `json:"code"`
	Name       string  `json:"name"`
	Sections   []share `json:"sections"`
}

type share struct {
	ProducerID int64       `json:"producerId,string"`
	Amount     json.Number `json:"amount"`
	Rate       json.Number `json:"rate"`
	Code       string      `json:"code"`
	Name       string      `json:"name"`
}

type lettering struct {
	State string  `json:"state"`
	Value *string `json:"value"`
}

type entry struct {
	ProducerID  int64           `json:"producerId,string"`
	Date        string          `json:"date"`
	DueDate     *string         `json:"dueDate"`
	Currency    currency        `json:"currency"`
	Journal     *journal        `json:"journal"`
	Properties  properties      `json:"additionalProducerProperties"`
	Attachments json.RawMessage `json:"attachments"`
}

type currency struct {
	Code string      `json:"code"`
	Rate json.Number `json:"rate,omitempty"`
}

type properties struct {
	Source          source           `json:"source"`
	PartnerMetadata *partnerMetadata `json:"partnerMetadata"`
	Comment         *string          `json:"comment"`
	CreatedAt       int64            `json:"createdAt"`
	AccountedAt     string           `json:"accountedAt"`
}

type source struct {
	Name       string      `json:"name"`
	ThirdParty *thirdParty `json:"thirdParty"`
}

type partnerMetadata struct {
	PartnerID json.RawMessage `json:"partnerId"`
	JSON      json.RawMessage `json:"json"`
}

type journal struct {
	ProducerID int64  `json:"producerId,string"`
	Code       string `json:"customerReferenceCode"`
	Name       string `json:"name"`
	Type       string `json:"type"`
}

type account struct {
	ProducerID int64  `json:"producerId,string"`
	Number     string `json:"number"`
	Name       string `json:"name"`
}

type payment struct {
	ProducerID int64  `json:"producerId,string"`
	Name       string `json:"name"`
	Code       string `json:"code"`
}

type thirdParty struct {
	Name string `json:"name"`
	Code string `json:"code"`
}
