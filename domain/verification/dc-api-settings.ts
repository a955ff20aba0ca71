import { z } from 'zod';
import type { DcqlQuery } from '../dcql/query.ts';
import { ORIGIN_PATTERN } from '../shared/address-patterns.ts';
import { listUpTo, Reference } from '../shared/bounds.ts';
import { isoMdocQueries } from './iso-mdoc/query.ts';
import { ISO_MDOC_PROTOCOL } from './iso-mdoc/request.ts';

/**
 * OpenID4VP 1.0 appendix A.2: origins are compared exactly. `http` is allowed for development on one machine; a text that is no web origin
 * names an app and is opaque.
 */
export const Origin = z
  .string()
  .max(500)
  .refine(isOrigin, 'an origin without a path or a wildcard, for example https://shop.example')
  .meta({ pattern: ORIGIN_PATTERN });

function isOrigin(text: string): boolean {
  if (/^(android|platform|ios):[\x21-\x7e]+$/.test(text)) return true;
  const url = URL.parse(text);
  if (url?.origin !== text) return false;
  // Origins are compared exactly, so a wildcard matches nothing.
  if (url.hostname.includes('*')) return false;
  return url.protocol === 'https:' || (url.protocol === 'http:' && isLocalhost(url.hostname));
}

function isLocalhost(host: string): boolean {
  return ['localhost', '127.0.0.1', '[::1]'].includes(host) || host.endsWith('.localhost');
}

/** Protocols that a configuration may offer: OpenID4VP 1.0 appendix A, ISO/IEC TS 18013-7 Annex C. */
export const DC_API_PROTOCOLS = ['openid4vp', ISO_MDOC_PROTOCOL] as const;

const DC_API_REQUESTS = ['signed', 'unsigned', 'multisigned'] as const;

/** Properties of a presentation configuration for requests through the Digital Credentials API. */
export const dcApiProperties = {
  expectedOrigins: z
    .array(Origin)
    .max(10)
    .nullish()
    .describe('Origins whose pages may send requests through the Digital Credentials API. Default: the origin of PUBLIC_URL'),
  dcApiRequest: z
    .enum(DC_API_REQUESTS)
    .default('signed')
    .describe(
      'requests through the Digital Credentials API: signed by the access key, unsigned, or signed by several keys ' +
        '(OpenID4VP 1.0 appendix A.3.2), additionally those of furtherAccessKeyChainIds',
    ),
  furtherAccessKeyChainIds: listUpTo(Reference, 4)
    .meta({ uniqueItems: true })
    .nullish()
    .describe(
      'With dcApiRequest multisigned: further key chains that sign the same request, for wallets that know the verifier by ' +
        'another certificate. A registration certificate must be issued for all their subjects',
    ),
  dcApiProtocols: z
    .array(z.enum(DC_API_PROTOCOLS))
    .min(1)
    .max(2)
    .meta({ uniqueItems: true })
    .default(['openid4vp'])
    .describe(
      'Protocols for the browser: openid4vp, org-iso-mdoc (ISO/IEC TS 18013-7 Annex C, only for mdocs, since some ' +
        'platforms support nothing else), or both in one request. org-iso-mdoc is for one page: a request names its ' +
        'origin if there are several expectedOrigins',
    ),
};

type DcApiSettings = z.infer<z.ZodObject<typeof dcApiProperties>> & {
  readonly dcql_query: DcqlQuery;
  readonly transaction_data?: readonly unknown[] | null | undefined;
};
type Fault = { readonly path: readonly (string | number)[]; readonly message: string };

/** Combinations of these properties that are invalid or have no effect. */
export function findDcApiProblems(body: DcApiSettings): readonly Fault[] {
  return [...findSignerProblems(body), ...findProtocolProblems(body)];
}

function findSignerProblems({ dcApiRequest, dcApiProtocols, furtherAccessKeyChainIds }: DcApiSettings): Fault[] {
  const path = ['furtherAccessKeyChainIds'];
  const further = furtherAccessKeyChainIds ?? [];
  if (dcApiRequest !== 'multisigned') {
    return further.length === 0 ? [] : [{ path, message: 'further key chains sign only with dcApiRequest multisigned' }];
  }
  if (!dcApiProtocols.includes('openid4vp')) {
    return [{ path: ['dcApiRequest'], message: 'org-iso-mdoc supports one signer; several signers require openid4vp' }];
  }
  if (further.length === 0) return [{ path, message: 'name the additional signing key chains' }];
  return new Set(further).size === further.length ? [] : [{ path, message: 'each of them once' }];
}

function findProtocolProblems({ dcApiProtocols, dcql_query, transaction_data }: DcApiSettings): Fault[] {
  const path = ['dcApiProtocols'];
  if (new Set(dcApiProtocols).size < dcApiProtocols.length) return [{ path, message: 'each of them once' }];
  if (!dcApiProtocols.includes(ISO_MDOC_PROTOCOL)) return [];
  const faults: Fault[] = isoMdocQueries(dcql_query).faults.map((fault) => ({
    path: ['dcql_query', ...fault.path],
    message: fault.message,
  }));
  const hasTransactionData = (transaction_data ?? []).length > 0;
  return hasTransactionData ? [...faults, { path, message: TRANSACTION_DATA_UNSUPPORTED }] : faults;
}

/** ISO/IEC TS 18013-7 Annex C does not transport transaction data, so a wallet could not confirm it. */
export const TRANSACTION_DATA_UNSUPPORTED = 'org-iso-mdoc does not support transaction data';
