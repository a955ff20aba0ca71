import { sign } from 'node:crypto';
import { expect } from 'chai';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { Log } from '../../../application/ports/log.ts';
import { RemoteStatusLists, type TokenForms } from '../../../application/status-lists/remote-status-lists.ts';
import { decodeCbor } from '../../../domain/formats/cbor/decode.ts';
import { encodeCbor } from '../../../domain/formats/cbor/encode.ts';
import { type CborMap, isArray, Tagged } from '../../../domain/formats/cbor/values.ts';
import { sigStructure } from '../../../domain/formats/cose/sign1.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { packEntries } from '../../../domain/status-lists/bits.ts';
import { prepareStatusListCwt } from '../../../domain/status-lists/token-cwt.ts';
import { compressList } from '../../support/compress-list.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { FakeRemote, SetClock } from '../verification/kit.ts';

const URI = 'https://issuer.example/lists/1';
const CWT = 'application/statuslist+cwt';

class NoLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('external status list in CWT form', () => {
  let signer: CertifiedKey;
  let remote: FakeRemote;
  let clock: SetClock;
  let lists: RemoteStatusLists;

  beforeEach(async () => {
    signer = await certify({ name: 'Status' });
    remote = new FakeRemote();
    clock = new SetClock();
    const eventBus = new InProcessEventBus();
    lists = new RemoteStatusLists({ remote, signatures: new NodeSignatures(), clock, eventBus, log: new NoLog() });
  });

  const seconds = () => Math.floor(clock.time / 1000);
  const claims = (changes: object = {}) => ({
    sub: URI,
    iat: seconds(),
    exp: seconds() + 3600,
    ttl: 600,
    status_list: { bits: 2 as const, lst: compressList(packEntries(2, 100, [{ index: 3, status: 2 }])) },
    ...changes,
  });
  function token(changes: object = {}, { key = signer.privateKey, chain = [signer.certificate] } = {}): Buffer {
    const prepared = prepareStatusListCwt({ claims: claims(changes), algorithm: 'ES256', chain });
    return prepared.seal(sign('sha256', prepared.toSign, { key, dsaEncoding: 'ieee-p1363' }));
  }
  const serve = (body: Buffer, contentType = CWT) => {
    remote.answer = () => ({ status: 200, contentType, body });
  };
  const reasonOf = async (forms: TokenForms = 'jwt-or-cwt') => {
    try {
      await lists.get('acme', URI, forms);
      return 'accepted';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };
  /** Changes the parts of the COSE_Sign1. */
  const bent = (bend: (parts: unknown[]) => void, tag = 18): Buffer => {
    const { value } = decodeCbor(token()) as Tagged;
    const parts = isArray(value) ? [...value] : [];
    bend(parts);
    return encodeCbor(new Tagged(tag, parts as never));
  };

  /** Signed with more claims, and with its certificates in the header that nobody signs. */
  const signedAgain = (
    { claim, chain }: { claim?: readonly [number, string | number | undefined]; chain?: Buffer },
    key = signer.privateKey,
  ): Buffer =>
    bent((parts) => {
      if (claim !== undefined) {
        const claims = new Map([...(decodeCbor(parts[2] as Buffer) as CborMap), claim]);
        parts[2] = encodeCbor(new Map([...claims].filter(([, value]) => value !== undefined)) as CborMap);
      }
      const header = decodeCbor(parts[0] as Buffer) as CborMap;
      if (chain !== undefined) {
        parts[0] = encodeCbor(new Map([...header].filter(([label]) => label !== 33)));
        parts[1] = new Map([[33, chain]]);
      }
      const toSign = sigStructure(parts[0] as Buffer, parts[2] as Buffer);
      parts[3] = sign('sha256', toSign, { key, dsaEncoding: 'ieee-p1363' });
    });
  const extended = (claim: readonly [number, string | number | undefined]) => signedAgain({ claim });

  it('may have its certificates in the unprotected header, where they must match the signature', async () => {
    serve(signedAgain({ chain: Buffer.from(signer.certificate, 'base64') }));
    expect(await reasonOf()).to.equal('accepted');
    lists.clear('acme');
    const other = await certify({ name: 'Other' });
    serve(signedAgain({ chain: Buffer.from(other.certificate, 'base64') }));
    expect(await reasonOf()).to.equal('status_invalid: signature');
  });
  it('is accepted with an nbf within the clock tolerance of a minute', async () => {
    serve(extended([5, seconds() + 59]));
    expect(await reasonOf()).to.equal('accepted');
  });
  for (const [status, body, expected] of [
    [203, 'a token', 'accepted'],
    [200, 'nothing', 'status_unavailable: HTTP status 200 without a body'],
    [204, 'nothing', 'status_unavailable: HTTP status 204 without a body'],
    [300, 'a token', 'status_unavailable: HTTP status 300'],
    [199, 'a token', 'status_unavailable: HTTP status 199'],
  ] as const) {
    it(`with the status ${status} and ${body} is ${expected}`, async () => {
      const bytes = body === 'nothing' ? Buffer.alloc(0) : token();
      remote.answer = () => ({ status, contentType: CWT, body: bytes });
      expect(await reasonOf()).to.equal(expected);
    });
  }

  it('is read for an mdoc, which accepts both forms', async () => {
    serve(token());
    const list = await lists.get('acme', URI, 'jwt-or-cwt');
    expect([list.bits, list.bytes.length, list.signer]).to.deep.equal([2, 25, [signer.certificate]]);
    expect(remote.calls).to.deep.equal([{ url: URI, accept: `application/statuslist+jwt, ${CWT};q=0.9` }]);
  });
  it('is cached for its lifetime, separately from the other form', async () => {
    serve(token());
    await lists.get('acme', URI, 'jwt-or-cwt');
    clock.time += 599_000;
    await lists.get('acme', URI, 'jwt-or-cwt');
    expect(remote.calls).to.have.length(1);
    expect(await reasonOf('jwt')).to.equal('status_invalid: content type');
    clock.time += 2_000;
    serve(token());
    await lists.get('acme', URI, 'jwt-or-cwt');
    expect(remote.calls).to.have.length(3);
  });
  it('is parsed without the tag of a COSE_Sign1, as in draft 14', async () => {
    serve(encodeCbor((decodeCbor(token()) as Tagged).value));
    const list = await lists.get('acme', URI, 'jwt-or-cwt');
    expect(list).to.be.an('object');
  });
  it('is rejected for an SD-JWT VC, which requires a JWT', async () => {
    serve(token());
    expect(await reasonOf('jwt')).to.equal('status_invalid: content type');
    expect(remote.calls[0]?.accept).to.equal('application/statuslist+jwt');
  });

  const bad: Readonly<Record<string, [() => Buffer, RegExp]>> = {
    'with the signature of another key': [() => token({}, { key: newKey().privateKey }), /signature/],
    'under a certificate that does not fit': [
      () => token({}, { chain: [Buffer.from('nonsense').toString('base64')] }),
      /signer certificate/,
    ],
    'for another address': [() => token({ sub: `${URI}/` }), /sub/],
    'that ended 60 seconds ago': [() => token({ exp: seconds() - 60 }), /exp/],
    'with a time in the future': [() => token({ iat: seconds() + 100 }), /iat/],
    'without a time to live': [() => token({ ttl: 0 }), /ttl/],
    'without a time of its making': [() => token({ iat: undefined }), /iat/],
    'without its list': [() => extended([65533, undefined]), /lst|list/],
    'with three bits': [() => token({ status_list: { bits: 3, lst: claims().status_list.lst } }), /bits/],
    'with a MAC': [() => bent(() => {}, 17), /COSE_Sign1/],
    'without its tag, with the signature of another key': [
      () => encodeCbor((decodeCbor(token({}, { key: newKey().privateKey })) as Tagged).value),
      /signature/,
    ],
    'with a changed payload': [
      () =>
        bent((parts) => {
          const payload = decodeCbor(parts[2] as Buffer) as CborMap;
          parts[2] = encodeCbor(new Map([...payload, [65534, 60]]));
        }),
      /signature/,
    ],
    'without certificates': [
      () =>
        bent((parts) => {
          const header = decodeCbor(parts[0] as Buffer) as CborMap;
          parts[0] = encodeCbor(new Map([...header].filter(([label]) => label !== 33)));
        }),
      /x5chain/,
    ],
    'of another type': [
      () =>
        bent((parts) => {
          const header = decodeCbor(parts[0] as Buffer) as CborMap;
          parts[0] = encodeCbor(new Map([...header, [16, 'application/cwt']]));
        }),
      /typ/,
    ],
    'that is not CBOR': [() => Buffer.from('ff', 'hex'), /status_invalid/],
    'that begins tomorrow': [() => extended([5, seconds() + 86_400]), /nbf/],
    'whose beginning is not a number': [() => extended([5, 'soon']), /nbf/],
    'for another recipient': [() => extended([3, 'https://other.example']), /aud/],
  };
  for (const [name, [make, reason]] of Object.entries(bad)) {
    it(`is rejected ${name}`, async () => {
      serve(make());
      const found = await reasonOf();
      expect(found).to.match(/^status_invalid/);
      expect(found).to.match(reason);
    });
  }
});
