/**
 * Everything the service can refuse or fail with, as its callers see it: one code, one status, one default message.
 * Contract, section 1. A code that is not in this table does not leave the process.
 */
const errorTable = {
  'ERR-VALIDATION': [400, 'The request is not valid; see details.issues'],
  'ERR-UNSUPPORTED-VERSION': [400, 'This version is not supported'],
  'ERR-SOCIETY-ID-REQUIRED': [
    400,
    'A firm token names the folder in the header society-id (GET /api/v1/key/info tells the level of a token)',
  ],
  'ERR-INVALID-AUTH-HEADER': [401, 'Send the header Authorization: Bearer <access token>'],
  'ERR-SECRET-HEADER-NOT-SET': [401, 'Send the partner secret in the header X-Third-Party-Secret'],
  'ERR-INVALID-SECRET': [401, 'The partner secret is not known'],
  'ERR-API-TOKEN-NOT-FOUND': [
    401,
    'The access token is not known, was revoked, or belongs to another third party',
  ],
  'ERR-FIRM-TOKEN-NOT-FOUND': [
    401,
    'The firm access token is not known, was revoked, or belongs to another third party',
  ],
  'ERR-THIRD-PARTY-DISCONNECTED': [403, 'The third party was disconnected'],
  'ERR-FORBIDDEN-ROUTE': [403, 'This route is not open to tokens of this level'],
  'ERR-FORBIDDEN-ACCESS': [403, 'This token does not give access to that folder'],
  'ERR-FILE-LINK-INVALID': [403, 'This address of a file was not made by the service, or was changed'],
  'ERR-NOT-FOUND': [404, 'There is nothing at this address'],
  'ERR-FOLDER-NOT-FOUND': [404, 'No such folder'],
  'ERR-EXERCICE-NOT-FOUND': [404, 'No such exercice in this folder'],
  'ERR-JOURNAL-NOT-FOUND': [404, 'No such journal in this folder'],
  'ERR-EXPORT-NOT-FOUND': [404, 'No such export in this folder'],
  'ERR-WEBHOOK-NOT-FOUND': [404, 'No such subscription of this caller'],
  'ERR-METHOD-NOT-ALLOWED': [405, 'This address does not answer to that method'],
  'ERR-NOT-ACCEPTABLE': [406, 'None of the media types of the Accept header can be served'],
  'ERR-PATCH-TEST-FAILED': [409, 'A test of the patch failed; nothing was changed'],
  'ERR-TOO-MANY-SUBSCRIPTIONS': [
    409,
    'The third party has as many subscriptions in this schema as it may; delete one that is not needed',
  ],
  'ERR-FILE-LINK-EXPIRED': [
    410,
    'This address of a file has expired; read the status of the export for a new one',
  ],
  'ERR-EXPORT-EXPIRED': [410, 'The time of this export is over and its file is removed; start a new one'],
  'ERR-PRECONDITION-FAILED': [
    412,
    'The ledger has changed since the export that If-Match names; start again',
  ],
  'ERR-PAYLOAD-TOO-LARGE': [413, 'The body of the request is too large'],
  'ERR-UNSUPPORTED-MEDIA-TYPE': [415, 'This address does not take a body of that media type'],
  'ERR-RANGE-NOT-SATISFIABLE': [
    416,
    'The file ends before that range begins; see Content-Range for its size',
  ],
  'ERR-TOO-MANY-REQUEST': [429, 'Too many requests with this token; see Retry-After'],
  'ERR-TOO-MANY-CONCURRENT-REQUEST': [
    429,
    'Too many requests of this route run on this folder; see Retry-After',
  ],
  'ERR-INTERNAL': [500, 'The service failed; quote the request id to its operators'],
  'ERR-UNAVAILABLE': [503, 'The service cannot take the request now; see Retry-After'],
  'ERR-API-UNDER-MAINTENANCE': [503, 'The service is under maintenance; see Retry-After'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof errorTable
export type ErrorStatus = (typeof errorTable)[ErrorCode][0]

/** One problem of a request: the query parameter, header or body field, and what is wrong with it. */
export interface Issue {
  parameter: string
  message: string
}

export interface AppErrorOptions {
  /** For the caller; the table's message where absent. Never a secret, SQL or a stack. */
  message?: string
  issues?: Issue[]
  /** Answer headers the status asks for: `Retry-After`, `Allow`. */
  headers?: Record<string, string>
  /** What the service lacks, as /readyz names it, where the error says so. */
  missing?: string | undefined
  cause?: unknown
}

/** What the world got wrong. Our own mistakes are assertions, and reach callers as ERR-INTERNAL. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly issues: Issue[] | undefined
  readonly headers: Record<string, string>
  readonly missing: string | undefined

  constructor(code: ErrorCode, options: AppErrorOptions = {}) {
    super(options.message ?? errorTable[code][1], options.cause === undefined ? {} : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.issues = options.issues
    this.headers = options.headers ?? {}
    this.missing = options.missing
  }

  get status(): ErrorStatus {
    return errorTable[this.code][0]
  }
}

/** 400 ERR-VALIDATION that names one parameter. */
export function invalid(parameter: string, message: string): AppError {
  return new AppError('ERR-VALIDATION', { issues: [{ parameter, message }] })
}

/** Every code with its status and default message, for the documentation of the API. */
export const errorCodes: Readonly<Record<ErrorCode, readonly [number, string]>> = errorTable
