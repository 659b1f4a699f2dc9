/** What the console shows instead of a page when it refuses a request. */
import { html } from 'hono/html'
import { Refused } from '../acts/act.ts'
import { missingOf } from '../db/outage.ts'
import { AppError } from '../errors.ts'
import { layout } from './layout.ts'
import { type Html, Refusal } from './page.ts'

/** Seconds after which a browser asks again for a page that was not available. */
const againSeconds = 5

const titles: Readonly<Record<Refusal['status'], string>> = {
  400: 'That does not work',
  401: 'Not signed in',
  403: 'Refused',
  404: 'Not found',
  405: 'Refused',
  409: 'That does not work',
  413: 'Too large',
  415: 'Refused',
  421: 'Wrong address',
  429: 'Too many attempts',
  500: 'Something is broken',
  503: 'Not available',
}

/** For these statuses, the messages of API errors are also meant for staff. */
const shownStatuses = [400, 404, 409, 429, 503] as const

/** The refusal that staff see for an error. A fault of the service is explained only in the log. */
export function refusalOf(error: Error, method: string): Refusal {
  if (error instanceof Refusal) return error
  if (error instanceof Refused) {
    const { status, field, message } = error
    return new Refusal(status, field === undefined ? message : `${field} ${message}`)
  }
  const missing = missingOf(error)
  if (missing !== undefined) {
    const next =
      method === 'POST'
        ? 'Go back, and look whether the form was carried out before you send it again.'
        : 'This page tries again every few seconds.'
    return new Refusal(503, `The service lacks ${missing}. ${next}`)
  }
  const status = shownStatuses.find((each) => error instanceof AppError && each === error.status)
  if (error instanceof AppError && status) {
    const { message, issues = [], headers } = error
    const problems = issues.map(({ parameter, message: text }) => `${parameter} ${text}`)
    return new Refusal(status, [message, ...problems].join(': '), headers)
  }
  return new Refusal(500, 'The service failed. Its log says why, at the event console.failed.')
}

/** @param method of the request: a browser may ask for a page again, but must not send a form again */
export function refusalPage({ status, message }: Refusal, method: string): Html {
  const signIn = html`<p><a href="/console/sign-in">Sign in</a></p>`
  const start = html`<p><a href="/console">To the console</a></p>`
  const main = html`<h1>${titles[status]}</h1><p class="problem">${message}</p>${status === 401 ? signIn : start}`
  const isRetried = status === 503 && method !== 'POST'
  return layout({ title: titles[status], main, againSeconds: isRetried ? againSeconds : undefined })
}
