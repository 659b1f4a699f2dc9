import type { Config } from '../../config.ts'
import { urlOf } from '../../listen.ts'

/** Lines for staff: how to give a partner access to a folder that was just filled. */
export function nextSteps(
  { publicUrl, host, port }: Pick<Config, 'publicUrl' | 'host' | 'port'>,
  folderId: string,
  exerciceId: string,
): string[] {
  // With port 0, only the service knows which free port it got.
  const address = publicUrl ?? urlOf(host, port === 0 ? '<port>' : port)
  return [
    '',
    'Next, for a partner to read it:',
    '  npm run cli -- partner create --help',
    `  npm run cli -- token issue --partner <code> --level api --folder ${folderId}`,
    `  curl "${address}/api/v1/mad/movements?version=1.0.0&idExercice=${exerciceId}" \\`,
    '    -H "Authorization: Bearer <token>" -H "X-Third-Party-Secret: <secret>"',
  ]
}
