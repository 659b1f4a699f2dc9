/**
 * Polls a condition until it holds; the test's own timeout ends a hopeless wait.
 * @param pauseMs longer if many tests wait concurrently for something slow
 */
export async function until(holds: () => boolean | Promise<boolean>, pauseMs = 20): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, pauseMs))
}
