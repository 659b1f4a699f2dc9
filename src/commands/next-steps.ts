/** Lines that tell staff how a partner comes to read a folder that was just filled. */
export function nextSteps(folderId: string, exerciceId: string): string[] {
  return [
    '',
    'Next, for a partner to read it:',
    '  npm run cli -- partner create --help',
    `  npm run cli -- token issue --partner <code> --level api --folder ${folderId}`,
    `  curl "http://127.0.0.1:8080/api/v1/mad/movements?version=1.0.0&idExercice=${exerciceId}" \\`,
    '    -H "Authorization: Bearer <token>" -H "X-Third-Party-Secret: <secret>"',
  ]
}
