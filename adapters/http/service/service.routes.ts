import { z } from 'zod';
import { CheckHealth, CheckReadiness, type Health } from '../../../application/health/check-health.ts';
import { issuerIdentifier, type Release, ServiceSettings } from '../../../application/ports/settings.ts';
import { isNavigation } from '../negotiation.ts';
import { homePage } from '../pages/home-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, reply, route } from '../route.ts';

const Dependency = z.object({ status: z.enum(['up', 'down']) });
const Dependencies = z.record(z.string(), Dependency);

const releaseShape = {
  version: z.string().describe('Release number'),
  commit: z.string().nullable().describe('Git commit that was built; null if it is unknown'),
};

export const HealthView = z
  .object({
    ...releaseShape,
    status: z
      .enum(['ok', 'degraded', 'error'])
      .describe('`degraded`: works, but for those who need what is down'),
    info: Dependencies.nullable().describe('What works'),
    error: Dependencies.nullable().describe('What does not'),
    details: Dependencies.describe('Both'),
  })
  .meta({ id: 'Health' });

export const LivenessView = z.object({ status: z.literal('ok') }).meta({ id: 'Liveness' });

export const ServiceView = z
  .object({
    name: z.string(),
    ...releaseShape,
    documentation: z.string(),
    issuerUrlTemplate: z.string().describe('Credential Issuer Identifier of a tenant'),
  })
  .meta({ id: 'Service' });

export function toHealthView(
  { healthy, degraded, probes }: Health,
  release: Release,
): z.infer<typeof HealthView> {
  const pick = (wanted: readonly boolean[]) =>
    Object.fromEntries(
      probes
        .filter(({ up }) => wanted.includes(up))
        .map(({ name, up }) => [name, { status: up ? ('up' as const) : ('down' as const) }]),
    );
  return {
    ...release,
    status: healthy ? (degraded ? 'degraded' : 'ok') : 'error',
    info: pick([true]),
    error: pick([false]),
    details: pick([true, false]),
  };
}

const common = { tag: 'Service', surface: 'admin', access: 'public', method: 'get' } as const;

export const serviceRoutes = family(
  { checkHealth: CheckHealth, checkReadiness: CheckReadiness, settings: ServiceSettings },
  ({ checkHealth, checkReadiness, settings }) => [
    route({
      ...common,
      path: '/',
      summary: 'Name and version of the service',
      isPageForBrowsers: true,
      responses: { 200: ServiceView },
      handle({ request }) {
        if (isNavigation(request.headers)) return pageReply(homePage(settings.publicUrl, readerOf(request)));
        return reply(200, {
          name: 'vidimus',
          ...settings.release,
          documentation: `${settings.publicUrl}/docs`,
          issuerUrlTemplate: issuerIdentifier(settings, '{tenant}'),
        });
      },
    }),
    route({
      ...common,
      path: '/health',
      summary: 'Whether the service and what it depends on work',
      responses: { 200: HealthView, 503: HealthView },
      async handle() {
        const health = await checkHealth.execute();
        return reply(health.healthy ? 200 : 503, toHealthView(health, settings.release));
      },
    }),
    route({
      ...common,
      path: '/health/live',
      summary: 'Whether the process answers; nothing else is looked at',
      responses: { 200: LivenessView },
      handle: () => reply(200, { status: 'ok' }),
    }),
    route({
      ...common,
      path: '/health/ready',
      summary: 'Whether the process is to be sent requests',
      responses: { 200: HealthView, 503: HealthView },
      async handle() {
        const health = await checkReadiness.execute();
        return reply(health.healthy ? 200 : 503, toHealthView(health, settings.release));
      },
    }),
  ],
);
