import { expect } from 'chai';
import { CreateKeyChain } from '../../../application/keys/key-chains.ts';
import {
  ReplacePresentationConfiguration,
  UpdatePresentationConfiguration,
} from '../../../application/verification/presentation-configurations.ts';
import type { Role } from '../../../domain/clients/role.ts';
import {
  PresentationConfigurationBody,
  PresentationConfigurationUpdate,
} from '../../../domain/verification/configuration.ts';
import { type AdministrationWorld, anAdministration, endOf } from '../administration/kit.ts';
import { query } from './kit.ts';

const AGE = { id: 'age', dcql_query: query({ id: 'pid' }) };
const ORDER = { body: { purpose: [{ lang: 'en', content: 'Age' }] } };

describe('Whoever manages presentations', () => {
  let world: AdministrationWorld;
  const caller = (roles: Role[] = ['presentation:manage'], allowed: string[] | null = null) =>
    world.caller(roles, { allowedIssuanceConfigs: null, allowedPresentationConfigs: allowed });
  const registrar = () => caller(['presentation:manage', 'registrar:manage']);
  /** Nothing is ordered here: what counts is who may. */
  const ports = () => ({ ...world, registrationCertificates: { check: async () => undefined } }) as never;
  const put = (changes: object, by = caller()) =>
    new ReplacePresentationConfiguration(ports()).execute(
      by,
      PresentationConfigurationBody.parse({ ...AGE, ...changes }),
    );
  const update = (changes: object, by = caller()) =>
    new UpdatePresentationConfiguration(ports()).execute(
      by,
      'age',
      PresentationConfigurationUpdate.parse(changes),
    );
  beforeEach(async () => {
    world = await anAdministration();
  });

  it('orders registration certificates with registrar:manage alone', async () => {
    expect(await endOf(put({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({});
    expect(await endOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ lifeTime: 300 })).to.deep.include({ registrationCert: ORDER, lifeTime: 300 });
    const other = { dcql_query: query({ id: 'other' }) };
    expect(await endOf(update(other)), 'an order for another query').to.equal('forbidden');
    expect(await endOf(put({ registrationCert: ORDER, ...other }))).to.equal('forbidden');
    expect(await update(other, registrar())).to.deep.include(other);
    expect(await update({ registrationCert: { id: 'known' } })).to.deep.include({
      registrationCert: { id: 'known' },
    });
    expect(await endOf(update({ registrationCert: ORDER }))).to.equal('forbidden');
  });

  it('has other reasons certified with registrar:manage alone', async () => {
    const purpose = [{ lang: 'en', content: 'Another reason' }];
    await put({ registrationCert: { body: {} } }, registrar());
    expect(await endOf(update({ purpose }))).to.equal('forbidden');
    expect(await endOf(put({ registrationCert: { body: {} }, purpose }))).to.equal('forbidden');
    expect(await update({ purpose }, registrar())).to.deep.include({ purpose });
    expect(await update({ purpose })).to.deep.include({ purpose });
    expect(await endOf(update({ purpose: null }))).to.equal('forbidden');
    await put({ registrationCert: ORDER }, registrar());
    expect(await update({ purpose }), 'the order says another one').to.deep.include({ purpose });
    await put({ registrationCert: { id: 'known' } }, registrar());
    expect(await update({ purpose: null }), 'nothing is ordered').to.not.have.property('purpose');
  });

  it('does not ask under the key of a configuration that the client may not use', async () => {
    for (const id of ['theirs', 'spare']) {
      await new CreateKeyChain(world).execute(caller(), { id, usageType: 'access' });
    }
    await put({ id: 'other', accessKeyChainId: 'theirs' });
    await put({});
    const narrow = () => caller(['presentation:manage'], ['age']);
    expect(await endOf(update({ accessKeyChainId: 'theirs' }, narrow()))).to.equal('forbidden');
    expect(await endOf(put({ accessKeyChainId: 'theirs' }, narrow()))).to.equal('forbidden');
    expect(await update({ accessKeyChainId: 'spare' }, narrow())).to.include({ accessKeyChainId: 'spare' });
    await update({ accessKeyChainId: 'theirs' });
    expect(await update({ lifeTime: 300 }, narrow())).to.include({ accessKeyChainId: 'theirs' });
  });
});
