/**
 * Waits until a condition holds, asking again and again; the test's own timeout ends a hopeless wait.
 * @param pauseMs longer where many tests wait side by side, for what takes a while
 */
export async function until(holds: () => boolean | Promise<boolean>, pauseMs = 20): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, pauseMs))
}
