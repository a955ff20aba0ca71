import { z } from 'zod';
import { listUpTo, Reference } from '../shared/bounds.ts';
import { DC_API_PROTOCOLS } from './dc-api.ts';
import type { DcqlQuery } from './dcql/query.ts';
import { isoMdocQueries } from './iso-mdoc/query.ts';
import { ISO_MDOC_PROTOCOL } from './iso-mdoc/request.ts';
import { Origin } from './page-origin.ts';

const DC_API_REQUESTS = ['signed', 'unsigned', 'multisigned'] as const;

/** Members of a presentation configuration for requests through the Digital Credentials API. */
export const dcApiMembers = {
  expectedOrigins: z
    .array(Origin)
    .max(10)
    .nullish()
    .describe(
      'whose pages may ask through the Digital Credentials API; unless stated those of the origin of PUBLIC_URL',
    ),
  dcApiRequest: z
    .enum(DC_API_REQUESTS)
    .default('signed')
    .describe(
      'requests through the Digital Credentials API: signed by the access key, unsigned, or signed by several keys ' +
        '(OpenID4VP 1.0 appendix A.3.2), those of furtherAccessKeyChainIds besides',
    ),
  furtherAccessKeyChainIds: listUpTo(Reference, 4)
    .meta({ uniqueItems: true })
    .nullish()
    .describe(
      'With dcApiRequest multisigned: further key chains that sign the same request, for wallets that know the verifier by ' +
        'another certificate. A registration certificate has to be of all their subjects',
    ),
  dcApiProtocols: z
    .array(z.enum(DC_API_PROTOCOLS))
    .min(1)
    .max(2)
    .meta({ uniqueItems: true })
    .default(['openid4vp'])
    .describe(
      'What the browser is offered: openid4vp, org-iso-mdoc (ISO/IEC TS 18013-7 Annex C, for mdocs alone, as some ' +
        'platforms know nothing else), or both in one request. org-iso-mdoc is made for one page: a request names its ' +
        'origin where there are several expectedOrigins',
    ),
};

type Members = z.infer<z.ZodObject<typeof dcApiMembers>> & {
  readonly dcql_query: DcqlQuery;
  readonly transaction_data?: readonly unknown[] | null | undefined;
};
type Fault = { readonly path: readonly (string | number)[]; readonly message: string };

/** What of these members cannot be, or would be of no effect. */
export function dcApiFaults(body: Members): readonly Fault[] {
  return [...signerFaults(body), ...protocolFaults(body)];
}

function signerFaults({ dcApiRequest, dcApiProtocols, furtherAccessKeyChainIds }: Members): Fault[] {
  const path = ['furtherAccessKeyChainIds'];
  const further = furtherAccessKeyChainIds ?? [];
  if (dcApiRequest !== 'multisigned') {
    return further.length === 0
      ? []
      : [{ path, message: 'further key chains sign only with dcApiRequest multisigned' }];
  }
  if (!dcApiProtocols.includes('openid4vp')) {
    return [{ path: ['dcApiRequest'], message: 'org-iso-mdoc has one signer; several sign for openid4vp' }];
  }
  if (further.length === 0) return [{ path, message: 'name the key chains that sign besides' }];
  return new Set(further).size === further.length ? [] : [{ path, message: 'each of them once' }];
}

function protocolFaults({ dcApiProtocols, dcql_query, transaction_data }: Members): Fault[] {
  const path = ['dcApiProtocols'];
  if (new Set(dcApiProtocols).size < dcApiProtocols.length) return [{ path, message: 'each of them once' }];
  if (!dcApiProtocols.includes(ISO_MDOC_PROTOCOL)) return [];
  const faults: Fault[] = isoMdocQueries(dcql_query).faults.map((fault) => ({
    path: ['dcql_query', ...fault.path],
    message: fault.message,
  }));
  const carries = (transaction_data ?? []).length > 0;
  return carries ? [...faults, { path, message: WITHOUT_TRANSACTION_DATA }] : faults;
}

/** ISO/IEC TS 18013-7 Annex C has no place for it, so nobody could confirm it. */
export const WITHOUT_TRANSACTION_DATA = 'org-iso-mdoc carries no transaction data';
