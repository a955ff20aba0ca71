import { z } from 'zod';
import type { Health } from '../../../application/health/check-health.ts';

const Dependency = z.object({ status: z.enum(['up', 'down']) });
const Dependencies = z.record(z.string(), Dependency);

export const HealthView = z
  .object({
    status: z.enum(['ok', 'error']),
    info: Dependencies.nullable().describe('What works'),
    error: Dependencies.nullable().describe('What does not'),
    details: Dependencies.describe('Both'),
  })
  .meta({ id: 'Health' });

export const ServiceView = z
  .object({
    name: z.string(),
    version: z.string(),
    documentation: z.string(),
    issuerUrlTemplate: z.string().describe('Credential Issuer Identifier of a tenant'),
  })
  .meta({ id: 'Service' });

export function toHealthView({ healthy, probes }: Health): z.infer<typeof HealthView> {
  const pick = (wanted: readonly boolean[]) =>
    Object.fromEntries(
      probes
        .filter(({ up }) => wanted.includes(up))
        .map(({ name, up }) => [name, { status: up ? ('up' as const) : ('down' as const) }]),
    );
  return {
    status: healthy ? 'ok' : 'error',
    info: pick([true]),
    error: pick([false]),
    details: pick([true, false]),
  };
}
