import { expect } from 'chai';
import { expectNamed, readPage } from '../support/docs-page.ts';
import { ask } from '../support/present.ts';
import { RegistrarWorld } from '../support/registrar-world.ts';

const PAGE = readPage('registrar.md');

describe('the page about registrars', () => {
  let world: RegistrarWorld;

  before(async () => {
    world = await RegistrarWorld.open();
  });
  after(() => world.close());

  it('shows requests that are taken, in their order', async () => {
    const { registrar } = world;
    registrar.password = 'the password of the account';
    for (const { method, path, text } of PAGE.requests) {
      const here = text
        .replace('https://registrar.example', registrar.url)
        .replace('https://login.registrar.example', registrar.url);
      const answer = await world.call(method, path, JSON.parse(here));
      expect(answer.status, `${path}: ${answer.text}`).to.equal(201);
    }
    const { payload } = await ask(world.service, world.token, 'account-opening');
    expect(payload['verifier_info']).to.have.length(1);
  });

  it('names every member of the login', async () => {
    const { components } = (await world.service.call('GET', '/openapi.json')).body;
    const { properties } = components.schemas.RegistrarConfigurationInput;
    const members = Object.keys(properties).filter((name) => properties[name].readOnly !== true);
    expect(members).to.have.length.greaterThan(6);
    expectNamed(PAGE, members);
  });
});
