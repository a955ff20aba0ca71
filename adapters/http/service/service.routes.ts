import { CheckHealth } from '../../../application/health/check-health.ts';
import { issuerIdentifier, ServiceSettings } from '../../../application/ports/settings.ts';
import { family, reply, route } from '../route.ts';
import { HealthView, ServiceView, toHealthView } from './health.view.ts';

const common = { tag: 'Service', surface: 'admin', access: 'public', method: 'get' } as const;

/** What anybody may know of the service. */
export const serviceRoutes = family(
  { checkHealth: CheckHealth, settings: ServiceSettings },
  ({ checkHealth, settings }) => [
    route({
      ...common,
      path: '/',
      summary: 'Name and version of the service',
      responses: { 200: ServiceView },
      handle() {
        return reply(200, {
          name: 'vidimus',
          version: settings.version,
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
        return reply(health.healthy ? 200 : 503, toHealthView(health));
      },
    }),
  ],
);
