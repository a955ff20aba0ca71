import { z } from 'zod';
import { parseRegistrationCertificate } from '../../domain/registrar/registration-certificate.ts';
import { registrationRequestFor } from '../../domain/registrar/registration-certificate-request.ts';
import { pageLimit, textCursor } from '../../domain/shared/list-page.ts';
import {
  type AffectedConfigurations,
  type Ending,
  FORECAST_KINDS,
  type ForecastPage,
  forecastPage,
  type Side,
} from '../../domain/trust-lists/forecast.ts';
import type { TenantCaller } from '../caller.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Store } from '../ports/store.ts';
import { certificateRequirement } from '../registrar/certificate-requirement.ts';
import type { TenantConfiguration } from '../tenant-cache/tenant-configuration.ts';
import { MAX_FOLLOWED_LISTS } from '../trust-lists/followed-lists.ts';
import { endingKeys } from './forecast-keys.ts';
import { endingCertificates, endingFollowedLists, endingPublishedLists } from './forecast-lists.ts';
import type { ForecastSubject } from './forecast-subject.ts';

export const TrustForecastQuery = z.object({
  until: z
    .union([z.iso.date(), z.iso.datetime({ offset: true })], {
      error: 'expected a date such as 2026-12-01, or a time such as 2026-12-01T12:00:00Z',
    })
    .transform((text) => new Date(text.includes('T') ? text : `${text}T23:59:59.999Z`))
    .optional()
    .describe('Only objects that expire by this time; for a date, the end of that day (UTC)'),
  kind: z.enum(FORECAST_KINDS).optional().describe('Only objects of this kind'),
  q: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Only objects with this text in their id or name, or in the id of a configuration that fails then'),
  limit: pageLimit(100),
  cursor: textCursor(/^\d{16}-[A-Za-z0-9_-]{22}$/),
  sort: z.enum(['asc', 'desc']).default('asc').describe('By expiry'),
});
export type TrustForecastQuery = z.infer<typeof TrustForecastQuery>;

/** Lists the certificates and lists that a tenant's trust depends on, own and external ones, with their expiry dates. */
export class ForecastTrust extends needs({ store: Store, clock: Clock }) {
  async execute(
    { tenant, roles }: TenantCaller,
    { until, kind, q: words, limit, cursor, sort }: TrustForecastQuery,
  ): Promise<ForecastPage> {
    const subject = await this.#subject(tenant);
    const endings = [
      ...endingKeys(subject),
      ...endingFollowedLists(subject),
      ...endingPublishedLists(subject),
      ...(await endingCertificates(subject)),
      ...(await this.#registrations(tenant, subject)),
    ];
    const sides = new Set<Side>();
    if (roles.includes('issuance:manage')) sides.add('issuance');
    if (roles.includes('presentation:manage')) sides.add('presentation');
    return forecastPage(endings, { sides, until, kind, words, limit, after: cursor, sort });
  }

  async #subject(tenant: TenantConfiguration): Promise<ForecastSubject> {
    const { store, clock } = this.ports;
    const { tenantId } = tenant;
    const issuance = await tenant.issuance();
    return {
      now: clock.now(),
      chains: await tenant.keyChains(),
      credentials: await tenant.writtenCredentialConfigurations(),
      presentations: await tenant.presentationConfigurations(),
      statusLists: await tenant.statusLists(),
      published: await store.forTenant(tenantId, ({ trustLists }) => trustLists.list()),
      followed: await store.lists(tenantId).storedLists(MAX_FOLLOWED_LISTS),
      wallets: { lists: issuance.walletProviderTrustLists, signers: issuance.walletProviderTrustListCertificates },
    };
  }

  /** Registration certificates, provided or ordered. */
  async #registrations(tenant: TenantConfiguration, { presentations, credentials }: ForecastSubject): Promise<readonly Ending[]> {
    const storedCertificates = await this.ports.store.forTenant(tenant.tenantId, (repositories) =>
      repositories.registrationCertificates.list(),
    );
    const byId = new Map(storedCertificates.map((certificate) => [certificate.id, certificate.jwt]));
    const byNumber = new Map(storedCertificates.map((certificate) => [certificate.certificateId, certificate.jwt]));
    const endings: Ending[] = [];
    const add = (jwt: string | undefined, affects: AffectedConfigurations, isOrdered: boolean) => {
      const ending = jwt === undefined ? undefined : endingOf(jwt, affects, isOrdered);
      if (ending !== undefined) endings.push(ending);
    };
    for (const { id, registrationCert: request, dcql_query: query, purpose } of presentations) {
      if (request === undefined || request === null) continue;
      const affects = { issuance: [], presentation: [id] };
      const certificateRequest = await certificateRequirement(tenant, { query }, registrationRequestFor(request, purpose));
      const jwt = request.jwt ?? byId.get(certificateRequest.id) ?? byNumber.get(request.id ?? '');
      add(jwt, affects, request.body !== undefined);
    }
    const request = (await tenant.issuanceConfiguration())?.registrationCert;
    if (request !== undefined && request !== null) {
      const affects = { issuance: credentials.map(({ id }) => id), presentation: [] };
      add(request.jwt ?? byNumber.get(request.id ?? ''), affects, request.body !== undefined);
    }
    return endings;
  }
}

/** Expiry of a registration certificate, which was verified when it was stored; undefined if it has none. */
function endingOf(jwt: string, affects: AffectedConfigurations, isOrdered: boolean): Ending | undefined {
  try {
    const { exp, sub } = parseRegistrationCertificate(jwt).jws.payload;
    if (typeof exp !== 'number' || !Number.isFinite(exp)) return undefined;
    const name = typeof sub === 'string' ? sub : 'registration certificate';
    return {
      kind: 'registration-certificate',
      id: `${name} ${exp}`,
      name,
      endsAt: new Date(exp * 1000),
      renews: isOrdered,
      affects,
      advice: isOrdered
        ? 'none while the registrar answers: another one is ordered before that time'
        : 'obtain another one from the registrar, and set it in registrationCert',
    };
  } catch {
    return undefined;
  }
}
