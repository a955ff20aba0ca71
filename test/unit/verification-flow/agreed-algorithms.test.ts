import { expect } from 'chai';
import sinon from 'sinon';
import { TenantConfiguration } from '../../../application/tenant-configuration.ts';
import { encodeBase64url } from '../../../domain/shared/base64url.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { presentationAlgorithms } from '../../../domain/verification/request-object.ts';
import { ACME, type Changes, formOf, present, World } from './kit.ts';

const ED25519 = { kty: 'OKP', crv: 'Ed25519', x: encodeBase64url(Buffer.alloc(32, 1)) };

/** ARF 3.0 OIA_03: presentations are verified by agreed algorithms alone under the profile `eu`. */
describe('Signatures of a presentation', () => {
  let world: World;
  beforeEach(async () => {
    world = await World.make();
    await world.configure({ redirectUri: 'https://shop.example/done' });
  });

  afterEach(() => sinon.restore());

  const under = (profile: Profile) => sinon.stub(TenantConfiguration.prototype, 'profile').get(() => profile);
  const reasonOf = async (changes: Changes): Promise<unknown> => {
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked, changes)] });
    await world.receiveResponse.execute(ACME, asked.publicId, form).catch(() => {});
    const { outcome } = await world.session(asked.session.id);
    const reasons = (outcome?.report ?? []).map((entry) => (entry as JsonObject)['reason']);
    return reasons.find((reason) => reason !== undefined);
  };

  it('by Ed25519 are verified, and not under `eu`', async () => {
    const byEdwards = { visible: { cnf: { jwk: ED25519 } }, kbHeader: { alg: 'EdDSA' } };
    expect(await reasonOf(byEdwards), 'nobody made it with that key').to.equal('kb_signature');
    under('eu');
    expect(await reasonOf(byEdwards)).to.equal('kb_alg');
    expect(await reasonOf({ header: { alg: 'EdDSA' } })).to.equal('issuer_alg');
  });

  it('are asked for by agreed algorithms under `eu`, in both formats', async () => {
    const published = async () => {
      const { claims } = await world.request();
      return (claims['client_metadata'] as JsonObject)['vp_formats_supported'];
    };
    expect(JSON.stringify(await published())).to.include('Ed25519');
    under('eu');
    const names = ['ES256', 'ES384', 'ES512'];
    const numbers = [-7, -9, -35, -51, -36, -52];
    expect(await published()).to.deep.equal({
      'dc+sd-jwt': { 'sd-jwt_alg_values': names, 'kb-jwt_alg_values': names },
      mso_mdoc: { issuerauth_alg_values: numbers, deviceauth_alg_values: numbers },
    });
  });

  it('of an mdoc are judged by those as well', () => {
    expect(presentationAlgorithms(false).cose).to.include('EdDSA');
    expect(presentationAlgorithms(true).cose).to.deep.equal(['ES256', 'ES384', 'ES512']);
  });
});
