import { object, z } from 'zod';
import { ServiceSettings } from '../../../application/ports/settings.ts';
import { ForecastTrust, TrustForecastQuery } from '../../../application/trust-forecast/trust-forecast.ts';
import { FORECAST_KINDS, type ForecastItem } from '../../../domain/trust-lists/forecast.ts';
import { nextPage } from '../output/next-page.ts';
import { family, reply, route } from '../route.ts';

const Ids = z.array(z.string()).describe('The first hundred ids');

const ForecastItemView = object({
  kind: z.enum(FORECAST_KINDS),
  id: z.string().describe('Id of the key chain or the list, or fingerprint (SHA-256, base64url) of a certificate'),
  name: z.string(),
  endsAt: z.iso.datetime(),
  renews: z.boolean().describe('The service renews it without an operator'),
  affects: object({
    issuance: Ids.describe('Credential configurations that cannot be issued then'),
    presentation: Ids.describe('Presentation configurations that fail then, or trust fewer issuers'),
  }),
  advice: z.string().describe('Action of the operator before that date'),
}).meta({ id: 'TrustForecastItem', description: 'An object of the trust of a tenant that expires' });

export const trustForecastRoutes = family({ forecastTrust: ForecastTrust, settings: ServiceSettings }, ({ forecastTrust, settings }) => [
  route({
    tag: 'Trust lists',
    surface: 'admin',
    access: { anyOf: ['issuance:manage', 'presentation:manage'], unrestricted: true },
    method: 'get',
    path: '/trust/forecast',
    operationId: 'forecastTrust',
    exampleParameters: { until: '2027-01-01T00:00:00Z', limit: 20 },
    summary: 'List expiry dates and their consequences',
    description:
      'Certificates and authorities of the tenant, followed and published trust lists, their signers, anchors and registration ' +
      'certificates, the earliest expiry first. Each role sees the objects of its configurations. The `Link` header with `rel="next"` is the address ' +
      'of the next page, and `X-Total-Count` is the number on all pages.',
    query: TrustForecastQuery,
    responses: { 200: z.array(ForecastItemView) },
    async handle({ caller, query }) {
      const { items, count, next } = await forecastTrust.execute(caller, query);
      const pages = nextPage(`${settings.publicUrl}/trust/forecast`, query, next);
      return reply(200, items.map(toView), { 'X-Total-Count': String(count), ...pages });
    },
  }),
]);

function toView({ kind, id, name, endsAt, renews, affects, advice }: ForecastItem) {
  const { issuance, presentation } = affects;
  return {
    kind,
    id,
    name,
    endsAt: endsAt.toISOString(),
    renews,
    advice,
    affects: { issuance: [...issuance], presentation: [...presentation] },
  };
}
