import { object, z } from 'zod';
import { AuthenticateClient } from '../../../application/clients/authenticate-client.ts';
import { CheckHealth, CheckReadiness, type Health } from '../../../application/health/check-health.ts';
import { issuerIdentifier, type Release, ServiceSettings } from '../../../application/ports/settings.ts';
import { homePage } from '../pages/home-page.ts';
import { pageReply } from '../pages/page.ts';
import { readerOf } from '../pages/reader.ts';
import { family, reply, route } from '../route.ts';
import { GuideFiles } from './guide-files.ts';

const Dependency = object({ status: z.enum(['up', 'down']) });
const Dependencies = z.record(z.string(), Dependency);

const releaseShape = {
  version: z.string().describe('Release number'),
  commit: z.string().nullable().describe('Git commit that was built; null if it is unknown'),
};

export const HealthView = object({
  ...releaseShape,
  status: z.enum(['ok', 'degraded', 'error']).describe('`degraded`: works, except for requests that depend on a failed component'),
  info: Dependencies.nullable().describe('What works'),
  error: Dependencies.nullable().describe('Failed components'),
  details: Dependencies.describe('Both'),
}).meta({ id: 'Health' });

export const LivenessView = object({ status: z.literal('ok') }).meta({ id: 'Liveness' });

export const ServiceView = object({
  name: z.string(),
  ...releaseShape,
  documentation: z.string(),
  issuerUrlTemplate: z.string().describe('Credential Issuer Identifier of a tenant'),
}).meta({ id: 'Service' });

/** Prefix of the parts whose names the operator chose. */
const KEY_PROVIDER = 'key-provider/';

/**
 * Joins the key providers into one part: their names would reveal to anonymous callers where the keys are.
 * @returns probes whose part `key-providers` is up if all providers are.
 */
function withoutProviderNames(probes: Health['probes']): Health['probes'] {
  const providers = probes.filter(({ name }) => name.startsWith(KEY_PROVIDER));
  if (providers.length === 0) return probes;
  const otherProbes = probes.filter((probe) => !providers.includes(probe));
  return [...otherProbes, { name: 'key-providers', up: providers.every(({ up }) => up) }];
}

/** @param showsNames lists key providers by name, which only operators may see. */
export function toHealthView(
  { healthy, degraded, probes: allProbes }: Health,
  release: Release,
  { showsNames }: { readonly showsNames: boolean },
): z.infer<typeof HealthView> {
  const probes = showsNames ? allProbes : withoutProviderNames(allProbes);
  const pick = (states: readonly boolean[]) =>
    Object.fromEntries(
      probes.filter(({ up }) => states.includes(up)).map(({ name, up }) => [name, { status: up ? ('up' as const) : ('down' as const) }]),
    );
  return {
    ...release,
    status: healthy ? (degraded ? 'degraded' : 'ok') : 'error',
    info: pick([true]),
    error: pick([false]),
    details: pick([true, false]),
  };
}

/**
 * Returns true if the request comes from a client that manages tenants. A token that cannot be verified is no error, because the route is
 * public.
 */
async function isOperator(authenticateClient: AuthenticateClient, authorization: string | undefined): Promise<boolean> {
  const [, token] = /^bearer (\S+)$/i.exec(authorization ?? '') ?? [];
  if (token === undefined) return false;
  try {
    return (await authenticateClient.execute(token)).tenantId === null;
  } catch {
    return false;
  }
}

const hasGuide = new GuideFiles('').isBuilt;
const common = { tag: 'Service', surface: 'admin', access: 'public', method: 'get' } as const;

export const serviceRoutes = family(
  { checkHealth: CheckHealth, checkReadiness: CheckReadiness, settings: ServiceSettings, authenticateClient: AuthenticateClient },
  ({ checkHealth, checkReadiness, settings, authenticateClient }) => [
    route({
      ...common,
      path: '/',
      operationId: 'getService',
      summary: 'Name and version of the service',
      browserPage: (request) => pageReply(homePage(settings.publicUrl, readerOf(request), hasGuide)),
      responses: { 200: ServiceView },
      handle() {
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
      operationId: 'getHealth',
      summary: 'State of the service and its dependencies',
      description:
        'Needs no token. With the token of a client that manages tenants, each key provider is listed as `key-provider/<name>`; otherwise ' +
        'all of them are one part, `key-providers`.',
      responses: { 200: HealthView, 503: HealthView },
      async handle({ request }) {
        const health = await checkHealth.execute();
        const showsNames = await isOperator(authenticateClient, request.headers.authorization);
        return reply(health.healthy ? 200 : 503, toHealthView(health, settings.release, { showsNames }));
      },
    }),
    route({
      ...common,
      path: '/health/live',
      operationId: 'getLiveness',
      summary: 'Liveness: the process responds; dependencies are not checked',
      responses: { 200: LivenessView },
      handle: () => reply(200, { status: 'ok' }),
    }),
    route({
      ...common,
      path: '/health/ready',
      operationId: 'getReadiness',
      summary: 'Readiness: the process accepts requests',
      responses: { 200: HealthView, 503: HealthView },
      async handle() {
        const health = await checkReadiness.execute();
        const view = toHealthView(health, settings.release, { showsNames: false });
        return reply(health.healthy ? 200 : 503, view);
      },
    }),
  ],
);
