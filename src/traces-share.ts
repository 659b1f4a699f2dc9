/**
 * Which share of the traces that begin in this service is recorded, according to the settings of OpenTelemetry. All
 * samplers here follow the caller: a sampler that decided by itself would leave gaps in traces of other services.
 * @returns 0 to 1
 */
export function tracesShareOf(
  sampler = 'parentbased_always_on',
  argument = '1',
  mistakes: string[] = [],
): number {
  switch (sampler) {
    case 'parentbased_always_on':
      return 1
    case 'parentbased_always_off':
      return 0
    case 'parentbased_traceidratio': {
      const share = /^\d+(?:\.\d+)?$/.test(argument) ? Number(argument) : Number.NaN
      if (share >= 0 && share <= 1) return share
      mistakes.push(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, not "${argument}"`)
      return 1
    }
    default:
      mistakes.push(
        'OTEL_TRACES_SAMPLER must be one of parentbased_always_on, parentbased_always_off, ' +
          `parentbased_traceidratio, not "${sampler}"`,
      )
      return 1
  }
}
