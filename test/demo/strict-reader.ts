import { strict as assert } from 'node:assert';
import { X509Certificate } from 'node:crypto';
import { decodeJwt, decodeProtectedHeader, importX509, jwtVerify } from 'jose';

type JsonProperties = Readonly<Record<string, unknown>>;
type Attached = readonly { readonly format: string; readonly data: string }[];
/** A type of credentials, as registration certificates name it. */
export type RegisteredType = { readonly format: string; readonly meta: JsonProperties };

/**
 * The checks of a strict European wallet (ARF RPA_04, RPRC_16, ISSU_22, ISSU_34): the access certificate is issued by a CA
 * on the list, and the registration certificate by a registrar on the list for this party. Shares no code with the service.
 */
export class StrictReader {
  readonly #authorities: readonly X509Certificate[];
  readonly #registrars: readonly X509Certificate[];

  private constructor(authorities: readonly X509Certificate[], registrars: readonly X509Certificate[]) {
    this.#authorities = authorities;
    this.#registrars = registrars;
  }

  /** @param operator who signs the lists; DER in standard base64. */
  static async load(listAddress: string, operator: string): Promise<StrictReader> {
    return new StrictReader(
      await readList(`${listAddress}/access-certificates`, operator),
      await readList(`${listAddress}/registrars`, operator),
    );
  }

  /** @returns who issues, as its access certificate says. */
  async checkIssuer(issuer: string, types: readonly RegisteredType[]): Promise<string> {
    const { origin, pathname } = new URL(issuer);
    const address = `${origin}/.well-known/openid-credential-issuer${pathname}`;
    const answer = await fetch(address, { headers: { Accept: 'application/jwt' } });
    const statusToken = await answer.text();
    assert.equal(answer.status, 200, `the metadata of the issuer: ${statusToken}`);
    const signer = buildPath(this.#authorities, certificateChain(statusToken), 'the metadata of the issuer');
    const { payload } = await jwtVerify(statusToken, await importX509(signer.toString(), 'ES256'));
    const { provides_attestations: registered = [] } = await this.#registered(payload['issuer_info']);
    for (const type of types)
      assert(
        registered.some(({ format, meta }) => format === type.format && isSameJson(meta, type.meta)),
        `the issuer is not registered for ${JSON.stringify(type.meta)}`,
      );
    return signer.subject.replaceAll('\n', ', ');
  }

  /** @returns who asks. @param chain of the request, leaf first; its signature was verified. */
  async checkRequest(chain: readonly string[], payload: JsonProperties): Promise<string> {
    const signer = buildPath(this.#authorities, chain, 'the request');
    const { credentials = [] } = await this.#registered(payload['verifier_info']);
    const { credentials: requestedCredentials } = payload['dcql_query'] as { credentials: RequestedCredential[] };
    for (const { format, meta, claims = [] } of requestedCredentials) {
      const entry = credentials.find((candidate) => candidate.format === format && isSameJson(candidate.meta, meta));
      assert(entry, 'the relying party is not registered for this credential');
      for (const { path } of claims)
        assert(
          entry.claim?.some((candidate) => isSameJson(candidate.path, path)),
          `it is not registered for ${path}`,
        );
    }
    return signer.subject.replaceAll('\n', ', ');
  }

  /** The registration certificate among what is attached, verified. */
  async #registered(attached: unknown): Promise<Registration> {
    const entry = (attached as Attached | undefined)?.find(({ format }) => format === 'registration_cert');
    assert(entry, 'there is no registration certificate');
    const signer = buildPath(this.#registrars, certificateChain(entry.data), 'the registration certificate');
    await jwtVerify(entry.data, await importX509(signer.toString(), 'ES256'), { typ: 'rc-wrp+jwt' });
    return decodeJwt<Registration>(entry.data);
  }
}

type Claim = { readonly path: readonly unknown[] };
type RequestedCredential = RegisteredType & { readonly claims?: readonly Claim[] };
type Registration = {
  readonly credentials?: readonly (RegisteredType & { readonly claim?: readonly Claim[] })[];
  readonly provides_attestations?: readonly RegisteredType[];
};

const isSameJson = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right);
const certificate = (der: string) => new X509Certificate(Buffer.from(der, 'base64'));
const certificateChain = (jwt: string): readonly string[] => decodeProtectedHeader(jwt).x5c ?? [];

/** The CAs of a list of trusted entities, whose signature by the operator is verified. */
async function readList(address: string, operator: string): Promise<readonly X509Certificate[]> {
  const text = await (await fetch(address)).text();
  const { payload } = await jwtVerify(text, await importX509(certificate(operator).toString(), 'ES256'));
  const { TrustedEntitiesList: entities } = payload['LoTE'] as { TrustedEntitiesList: Entity[] };
  return entities.flatMap(({ TrustedEntityServices: services }) =>
    services.flatMap(({ ServiceInformation: { ServiceDigitalIdentity: identity } }) =>
      identity.X509Certificates.map(({ val }) => certificate(val)),
    ),
  );
}

type Entity = {
  readonly TrustedEntityServices: readonly {
    readonly ServiceInformation: { readonly ServiceDigitalIdentity: { readonly X509Certificates: readonly { readonly val: string }[] } };
  }[];
};

/** @returns the signer of what leads to one of the anchors and is valid now. */
function buildPath(anchors: readonly X509Certificate[], chain: readonly string[], description: string): X509Certificate {
  const certificates = chain.map(certificate);
  const now = new Date();
  const isGood = certificates.every((certificate, index) => {
    const above = certificates[index + 1];
    const issuers = above === undefined ? anchors : [above];
    const isValid = certificate.validFromDate <= now && now <= certificate.validToDate;
    return isValid && issuers.some((issuer) => certificate.verify(issuer.publicKey));
  });
  const [signer] = certificates;
  assert(signer !== undefined && isGood, `${description} is signed by nobody on the list`);
  return signer;
}
