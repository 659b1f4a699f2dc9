/**
 * Every error code that callers can see (docs/spec/interface.md#errors). No other code leaves the process. `npm run
 * docs -- errors` writes docs/errors.md from this table. The service and the partners' package share this file, so it
 * imports nothing.
 */

/** One error code. Its texts are for callers and contain no secret, SQL or stack. */
export interface CallerError {
  /** HTTP status. */
  status: number
  /** The usual `error.message`. Where an error is thrown, a more specific message may replace it. */
  message: string
  /** What causes the error, in Markdown for docs/errors.md. */
  cause: string
  /** What the caller can do, in Markdown for docs/errors.md. */
  remedy: string
}

/** All errors by their codes. */
export const errorCodes = {
  'ERR-VALIDATION': {
    status: 400,
    message: 'The request is not valid; see details.issues',
    cause:
      'A parameter, header or body field is missing, unknown, malformed or sent twice, or it contradicts another one. ' +
      '`details.issues` lists every problem of the request at once.',
    remedy: 'Correct what `details.issues` names, then send the request again.',
  },
  'ERR-UNSUPPORTED-VERSION': {
    status: 400,
    message: 'This version is not supported',
    cause: '`version` is well formed, but the service does not support it.',
    remedy: 'Send one of the versions that the message lists.',
  },
  'ERR-SOCIETY-ID-REQUIRED': {
    status: 400,
    message: 'A firm token must name a folder in the header society-id',
    cause: 'A firm token opens several folders, and the request names none of them.',
    remedy:
      'Name the folder in the header `society-id` or in the parameter `accountingFolderId`. `GET /api/v1/society` lists ' +
      'the folders of the token, `GET /api/v1/key/info?mode=extended` shows its level.',
  },
  'ERR-INVALID-AUTH-HEADER': {
    status: 401,
    message: 'Send the header Authorization: Bearer <access token>',
    cause: 'The header `Authorization` is missing, or is not `Bearer` followed by a token.',
    remedy: 'Send `Authorization: Bearer <access token>`.',
  },
  'ERR-SECRET-HEADER-NOT-SET': {
    status: 401,
    message: 'Send the partner secret in the header X-Third-Party-Secret',
    cause: 'The header `X-Third-Party-Secret` is missing or empty.',
    remedy: 'Send the partner secret in `X-Third-Party-Secret` with every request.',
  },
  'ERR-INVALID-SECRET': {
    status: 401,
    message: 'The partner secret is not known',
    cause: 'No third party has this secret, or it was replaced and its grace period is over.',
    remedy: 'Send the current partner secret. If it is lost, ask the operators for a new one.',
  },
  'ERR-API-TOKEN-NOT-FOUND': {
    status: 401,
    message: 'The access token is not known, was revoked, has expired, or belongs to another third party',
    cause:
      'The token does not exist, was revoked, has expired, or was issued to another third party than the one whose secret was sent.',
    remedy:
      'Check that token and secret belong together. Ask the operators for a new token if yours has ended.',
  },
  'ERR-FIRM-TOKEN-NOT-FOUND': {
    status: 401,
    message:
      'The firm access token is not known, was revoked, has expired, or belongs to another third party',
    cause: 'As `ERR-API-TOKEN-NOT-FOUND`, for a token that begins with `glv_firm_`.',
    remedy:
      'Check that token and secret belong together. Ask the operators for a new token if yours has ended.',
  },
  'ERR-THIRD-PARTY-DISCONNECTED': {
    status: 403,
    message: 'The third party was disconnected',
    cause: 'The operators disconnected the third party. The message contains their reason.',
    remedy: 'Contact the operators. When they reconnect the third party, its tokens work again.',
  },
  'ERR-FORBIDDEN-ROUTE': {
    status: 403,
    message: 'This route is not open to tokens of this level',
    cause:
      'The token was issued for some groups of routes alone, and the message names the groups that it lacks; or the route ' +
      'needs a token of the other level (in this version every route is open to both).',
    remedy:
      'Ask the operators for a token with these groups. `GET /api/v1/key/info` lists the routes that yours may call.',
  },
  'ERR-FORBIDDEN-ACCESS': {
    status: 403,
    message: 'This token does not give access to that folder',
    cause:
      'A request with a company token names another folder than the one the token opens. On webhook routes also: the ' +
      'caller is a customer with a firm token, to whom these routes are closed.',
    remedy:
      'Name no folder, or the one that the token opens. For other folders use their own tokens or a firm token.',
  },
  'ERR-FILE-LINK-INVALID': {
    status: 403,
    message: 'The signature of this file address is not valid',
    cause: 'A download address was altered or cut, or was never issued by the service.',
    remedy: 'Use `url` exactly as the status of the export returns it.',
  },
  'ERR-NOT-FOUND': {
    status: 404,
    message: 'There is no route at this address',
    cause: 'No route has this path.',
    remedy: 'Compare the path with `GET /api/v1/openapi.json`.',
  },
  'ERR-FOLDER-NOT-FOUND': {
    status: 404,
    message: 'No such folder',
    cause: 'The folder does not exist, or it is not one of the firm of the token.',
    remedy: 'Take the id from `GET /api/v1/society`.',
  },
  'ERR-EXERCICE-NOT-FOUND': {
    status: 404,
    message: 'No such exercice in this folder',
    cause: 'The folder has no fiscal year with the id in `idExercice`.',
    remedy: 'Take the id from `GET /api/v1/mad/exercices`.',
  },
  'ERR-JOURNAL-NOT-FOUND': {
    status: 404,
    message: 'No such journal in this folder',
    cause: 'Some ids in `journalIds` are not journals of the folder. The message lists them.',
    remedy: 'Take the ids from `GET /api/v1/mad/journals`.',
  },
  'ERR-ENTRY-NOT-FOUND': {
    status: 404,
    message: 'No such entry in this folder',
    cause:
      'No entry of the folder has this id, and no validated entry has this invoice number or partner id. With `draft`: ' +
      'no entry that awaits validation has it.',
    remedy:
      'Check the folder and `id`: letter case and leading zeros count. Name an entry that awaits validation by ' +
      'its `producerId`, or add `draft`.',
  },
  'ERR-EXPORT-NOT-FOUND': {
    status: 404,
    message: 'No such export in this folder',
    cause:
      'The export does not exist, belongs to another folder, or ended so long ago that its record was deleted.',
    remedy: 'Check `exportId` and the folder, or start a new export.',
  },
  'ERR-WEBHOOK-NOT-FOUND': {
    status: 404,
    message: 'No such subscription of this caller',
    cause:
      'The subscription does not exist, or it belongs to another caller. Tokens of one level do not see what tokens of ' +
      'the other level created.',
    remedy: 'List your subscriptions with `GET /api/v1/webhook`.',
  },
  'ERR-METHOD-NOT-ALLOWED': {
    status: 405,
    message: 'This address does not support this method',
    cause: 'The path exists, but not with this method. `HEAD` is refused where `GET` starts an export.',
    remedy: 'Use a method that the header `Allow` lists.',
  },
  'ERR-NOT-ACCEPTABLE': {
    status: 406,
    message: 'None of the media types of the Accept header can be served',
    cause: 'The header `Accept` admits neither `application/json` nor `application/x-ndjson`.',
    remedy: 'Accept one of the two, or leave the header out.',
  },
  'ERR-PATCH-TEST-FAILED': {
    status: 409,
    message: 'A test of the patch failed; nothing was changed',
    cause: 'A `test` operation of the JSON Patch does not match the subscription as it is now.',
    remedy: 'Read the subscription and send a patch that fits it.',
  },
  'ERR-AMBIGUOUS-ENTRY': {
    status: 409,
    message: 'Several entries have this invoice number or partner id',
    cause:
      'Several entries of the folder have this invoice number or, if none has it, this partner id. ' +
      '`details.producerIds` lists the first 100 of them.',
    remedy: 'Ask for one of `details.producerIds`.',
  },
  'ERR-WEBHOOK-PULL-ONLY': {
    status: 409,
    message: 'This subscription has no address: nothing is sent to it',
    cause: 'A ping or a replay was requested for a subscription whose `postUrl` is null.',
    remedy: 'Read its events by number, or give it a `postUrl` first.',
  },
  'ERR-WEBHOOK-DISABLED': {
    status: 409,
    message: 'This subscription is disabled: nothing is sent to it',
    cause: 'A replay was requested for a disabled subscription.',
    remedy: 'Enable it with a `PATCH`, an empty one (`[]`) for example, then repeat the request.',
  },
  'ERR-TOO-MANY-SUBSCRIPTIONS': {
    status: 409,
    message: 'The third party has reached its limit of subscriptions in this schema; delete one first',
    cause:
      'The tokens of the third party have created as many subscriptions in the schema as the operators allow (100 by ' +
      'default). Disabled ones count.',
    remedy: 'Delete a subscription that you no longer need.',
  },
  'ERR-FILE-LINK-EXPIRED': {
    status: 410,
    message: 'This file address has expired; read the status of the export for a new one',
    cause: 'The download address is more than an hour old, or its file was removed.',
    remedy:
      'Read the status of the export again. While the file is kept, each status contains a new address.',
  },
  'ERR-EVENTS-EXPIRED': {
    status: 410,
    message: 'Events after this number are no longer kept; details.oldest is the first number that is',
    cause:
      'The event that follows the number in `after` happened more than 30 days ago and was deleted. `details.oldest` is the ' +
      'first number still kept.',
    remedy:
      'Read from the ledger what the lost events were about. Then go on with `after` one below `details.oldest`.',
  },
  'ERR-EXPORT-EXPIRED': {
    status: 410,
    message: 'This export has expired and its file was removed; start a new one',
    cause: 'The file was kept for the retention period (7 days by default), and that is over.',
    remedy: 'Start a new export.',
  },
  'ERR-CURSOR-EXPIRED': {
    status: 410,
    message:
      'Changes since this cursor can no longer be told; compare the copy with its blocks, and read what differs',
    cause:
      'The cursor in `since` was once valid, but what changed after it is no longer known: it is too old (the ' +
      'operators keep changes for 400 days by default), another server took the place of the database, after a ' +
      'failover or a restore, or this version of the service writes lines differently. The message names the reason.',
    remedy:
      'Keep the rows, compare them with the blocks of the selection, read the ranges that differ by `entries`, and go on ' +
      'with the cursor of the blocks. Or read the selection once in full, without `since`.',
  },
  'ERR-PRECONDITION-FAILED': {
    status: 412,
    message: 'The ledger has changed since the export that If-Match names; start again',
    cause:
      'The ledger has changed since the answer with this ETag was sent, or the ETag is of another selection.',
    remedy: 'Discard the first part and start the transfer again, without `after`.',
  },
  'ERR-PAYLOAD-TOO-LARGE': {
    status: 413,
    message: 'The body of the request is too large',
    cause:
      'The body is larger than 64 KiB (8 MiB for changes of many ledgers), the URL longer than 16 KiB, or the headers are larger than 32 KiB.',
    remedy: 'Send less: a shorter list of values, fewer or shorter headers.',
  },
  'ERR-UNSUPPORTED-MEDIA-TYPE': {
    status: 415,
    message: 'This address does not take a body of that media type',
    cause:
      '`Content-Type` states something other than JSON in UTF-8, or the body is compressed. A body without ' +
      '`Content-Type` is read as JSON.',
    remedy: 'Send uncompressed JSON with a media type that the message lists.',
  },
  'ERR-RANGE-NOT-SATISFIABLE': {
    status: 416,
    message: 'The file ends before this range begins; Content-Range has its size',
    cause: 'The header `Range` begins at or after the end of the file.',
    remedy: 'Compare with the size in `Content-Range`: you may have the whole file already.',
  },
  'ERR-TOO-MANY-REQUEST': {
    status: 429,
    message: 'Too many requests with this token; see Retry-After',
    cause: 'The token has used up the requests of the current window (by default 20 in 10 seconds).',
    remedy:
      'Wait for the seconds in `Retry-After`. `X-Rate-Limit-Remaining` on every answer shows how many requests are left.',
  },
  'ERR-TOO-MANY-CONCURRENT-REQUEST': {
    status: 429,
    message: 'Too many requests to this route are running for this folder; see Retry-After',
    cause:
      'As many requests as allowed (10 by default) are running on this route for this folder, or two answers with many ledgers for this token.',
    remedy: 'Let one of them end, or wait for the seconds in `Retry-After`.',
  },
  'ERR-INTERNAL': {
    status: 500,
    message: 'The service failed; send the request id to its operators',
    cause: 'A fault of the service.',
    remedy:
      'Send `details.requestId` to the operators. The same request is likely to fail again until it is fixed.',
  },
  'ERR-UNAVAILABLE': {
    status: 503,
    message: 'The service cannot take the request now; see Retry-After',
    cause: 'The database, the file store or the export threads cannot take the request at the moment.',
    remedy: 'Repeat the request after the seconds in `Retry-After`.',
  },
  'ERR-API-UNDER-MAINTENANCE': {
    status: 503,
    message: 'The service is under maintenance; see Retry-After',
    cause: 'The operators have switched the service to maintenance.',
    remedy: 'Repeat the request after the seconds in `Retry-After`.',
  },
} as const satisfies Record<string, CallerError>

export type ErrorCode = keyof typeof errorCodes
export type ErrorStatus = (typeof errorCodes)[ErrorCode]['status']

/** One problem of a request: the query parameter, header or body field, and what is wrong with it. */
export interface Issue {
  parameter: string
  message: string
}
