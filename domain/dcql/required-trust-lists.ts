import type { DcqlQuery } from './query.ts';

/** Trust lists that a query requires of issuers (OpenID4VP 1.0 section 6.1.1, `etsi_tl`), with their paths. */
export function requiredTrustLists({ credentials }: DcqlQuery): readonly { uri: string; path: string }[] {
  return credentials.flatMap(({ trusted_authorities = [] }, i) =>
    trusted_authorities.flatMap(({ type, values }, j) =>
      type === 'etsi_tl' ? values.map((uri, k) => ({ uri, path: `dcql_query.credentials.${i}.trusted_authorities.${j}.values.${k}` })) : [],
    ),
  );
}
