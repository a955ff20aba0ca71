import { makeJwt } from './raw-wallet.ts';
import type { CertifiedKey } from './test-certificates.ts';

const SERVICE_TYPE = 'http://uri.etsi.org/19602/SvcType';

/** Applies overrides; undefined removes a property. */
const withOverrides = (base: Record<string, unknown>, changes: Record<string, unknown> = {}) =>
  Object.fromEntries(Object.entries({ ...base, ...changes }).filter(([, value]) => value !== undefined));

/** A service of an entity; `type` is the last part of its identifier. */
export type ListedService = {
  readonly type: string;
  readonly certificates: readonly string[];
  /** Further properties of `ServiceInformation`. */
  readonly more?: Record<string, unknown>;
};

export type ListedEntity = { readonly name: string; readonly services: readonly ListedService[] };

export type ListOptions = {
  readonly entities?: readonly ListedEntity[];
  readonly sequenceNumber?: number;
  /** Overrides of `ListAndSchemeInformation`. */
  readonly scheme?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly signer?: CertifiedKey;
  /** Replaces the whole document. */
  readonly payload?: Record<string, unknown>;
};

/** A list of trusted entities (ETSI TS 119 602), signed; valid by default. */
export function trustList(
  options: ListOptions & { readonly entities: readonly ListedEntity[]; readonly signer: CertifiedKey },
  seconds: number,
): string {
  const { entities, sequenceNumber = 1, signer } = options;
  const scheme = withOverrides(
    {
      LoTEVersionIdentifier: 1,
      LoTESequenceNumber: sequenceNumber,
      LoTEType: 'http://uri.etsi.org/19602/LoTEType/EUWalletProvidersList',
      SchemeOperatorName: [{ lang: 'en', value: 'Scheme Operator' }],
      ListIssueDateTime: dateTime(seconds - 60),
      NextUpdate: dateTime(seconds + 30 * 86_400),
    },
    options.scheme,
  );
  const payload = options.payload ?? {
    LoTE: withOverrides({
      ListAndSchemeInformation: scheme,
      TrustedEntitiesList: entities.length === 0 ? undefined : entities.map(entityDocument),
    }),
  };
  const header = { alg: 'ES256', typ: 'trustlist+jwt', x5c: [signer.certificate], iat: seconds - 60 };
  return makeJwt(signer, withOverrides(header, options.header), payload);
}

function dateTime(seconds: number): string {
  return new Date(seconds * 1000).toISOString();
}

function entityDocument({ name, services }: ListedEntity) {
  return {
    TrustedEntityInformation: {
      TEName: [{ lang: 'en', value: name }],
      TEAddress: { TEPostalAddress: [{ lang: 'en', StreetAddress: 'Example Street 1', Country: 'EU' }] },
      TEInformationURI: [{ lang: 'en', uriValue: 'https://wallet-provider.example' }],
    },
    TrustedEntityServices: services.map(({ type, certificates, more = {} }) => ({
      ServiceInformation: {
        ServiceName: [{ lang: 'en', value: type }],
        ServiceTypeIdentifier: `${SERVICE_TYPE}/${type}`,
        ServiceDigitalIdentity: { X509Certificates: certificates.map((val) => ({ val })) },
        ...more,
      },
    })),
  };
}
