import { CheckHealth } from '../../../application/health/check-health.ts';
import type { PortsOf } from '../../../application/needs.ts';
import { issuerIdentifier, ServiceSettings } from '../../../application/ports/settings.ts';
import { family, type Route, reply, route } from '../route.ts';
import { HealthView, ServiceView, toHealthView } from './health.view.ts';

const common = { tag: 'Service', surface: 'admin', access: 'public', method: 'get' } as const;

const USE_CASES = { checkHealth: CheckHealth, settings: ServiceSettings };

/** What anybody may know of the service. */
export const serviceRoutes = family(USE_CASES, routesOf);

function routesOf({ checkHealth, settings }: PortsOf<typeof USE_CASES>): readonly Route[] {
  return [
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
  ];
}
