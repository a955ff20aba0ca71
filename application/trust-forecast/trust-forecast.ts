import { z } from 'zod';
import { parseRegistrationCertificate } from '../../domain/registrar/registration-certificate.ts';
import { certificateFor } from '../../domain/registrar/registration-certificate-request.ts';
import { pageLimit, textCursor } from '../../domain/shared/list-page.ts';
import {
  type Affected,
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
import { wantedCertificate } from '../registrar/wanted-certificate.ts';
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
    .describe('Only what ends by then; of a date alone the end of that day (UTC)'),
  kind: z.enum(FORECAST_KINDS).optional().describe('Only what is of this kind'),
  q: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Only what has this in its id or name, or in the id of a configuration that fails then'),
  limit: pageLimit(100),
  cursor: textCursor(/^\d{16}-[A-Za-z0-9_-]{22}$/),
  sort: z.enum(['asc', 'desc']).default('asc').describe('By the time at which it ends'),
});
export type TrustForecastQuery = z.infer<typeof TrustForecastQuery>;

/** What the trust of a tenant rests on, and when it ends: its own certificates and lists, and those of others. */
export class ForecastTrust extends needs({ store: Store, clock: Clock }) {
  async execute(
    { configured, roles }: TenantCaller,
    { until, kind, q: words, limit, cursor: after, sort }: TrustForecastQuery,
  ): Promise<ForecastPage> {
    const subject = await this.#subject(configured);
    const endings = [
      ...endingKeys(subject),
      ...endingFollowedLists(subject),
      ...endingPublishedLists(subject),
      ...(await endingCertificates(subject)),
      ...(await this.#registrations(configured, subject)),
    ];
    const sides = new Set<Side>();
    if (roles.includes('issuance:manage')) sides.add('issuance');
    if (roles.includes('presentation:manage')) sides.add('presentation');
    return forecastPage(endings, { sides, until, kind, words, limit, after, sort });
  }

  async #subject(configured: TenantConfiguration): Promise<ForecastSubject> {
    const { store, clock } = this.ports;
    const { tenantId } = configured;
    const issuance = await configured.issuance();
    return {
      now: clock.now(),
      chains: await configured.keyChains(),
      credentials: await configured.writtenCredentialConfigurations(),
      presentations: await configured.presentationConfigurations(),
      statusLists: await configured.statusLists(),
      published: await store.forTenant(tenantId, ({ trustLists }) => trustLists.list()),
      followed: await store.lists(tenantId).keptLists(MAX_FOLLOWED_LISTS),
      wallets: { lists: issuance.walletProviderTrustLists, signers: issuance.walletProviderTrustListCertificates },
    };
  }

  /** Registration certificates, as they were brought or ordered. */
  async #registrations(configured: TenantConfiguration, { presentations, credentials }: ForecastSubject): Promise<readonly Ending[]> {
    const stored = await this.ports.store.forTenant(configured.tenantId, (own) => own.registrationCertificates.list());
    const byId = new Map(stored.map((one) => [one.id, one.jwt]));
    const byNumber = new Map(stored.map((one) => [one.certificateId, one.jwt]));
    const endings: Ending[] = [];
    const add = (jwt: string | undefined, affects: Affected, isOrdered: boolean) => {
      const ending = jwt === undefined ? undefined : endingOf(jwt, affects, isOrdered);
      if (ending !== undefined) endings.push(ending);
    };
    for (const { id, registrationCert: request, dcql_query: query, purpose } of presentations) {
      if (request === undefined || request === null) continue;
      const affects = { issuance: [], presentation: [id] };
      const wanted = await wantedCertificate(configured, { query }, certificateFor(request, purpose));
      const jwt = request.jwt ?? byId.get(wanted.id) ?? byNumber.get(request.id ?? '');
      add(jwt, affects, request.body !== undefined);
    }
    const request = (await configured.issuanceConfiguration())?.registrationCert;
    if (request !== undefined && request !== null) {
      const affects = { issuance: credentials.map(({ id }) => id), presentation: [] };
      add(request.jwt ?? byNumber.get(request.id ?? ''), affects, request.body !== undefined);
    }
    return endings;
  }
}

/** It was checked when it was taken; one that does not open, or has no end, does not end. */
function endingOf(jwt: string, affects: Affected, isOrdered: boolean): Ending | undefined {
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
        ? 'nothing, as long as the registrar answers: another one is ordered before that'
        : 'obtain another one from the registrar, and name it in registrationCert',
    };
  } catch {
    return undefined;
  }
}
