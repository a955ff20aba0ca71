import { expect } from 'chai';
import { z } from 'zod';
import { resourceRoutes } from '../../adapters/http/resource-routes.ts';
import type { Find, Route } from '../../adapters/http/route.ts';
import { CredentialConfigurationBody } from '../../domain/issuance/configuration.ts';
import { IssuanceConfigurationBody } from '../../domain/issuance/issuance-configuration.ts';
import { type EditedKind, RESOURCES } from '../../domain/resources.ts';
import { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';

type Members = Readonly<Record<string, unknown>>;

/** A document with `value` at the place. */
function holding(path: string, value: unknown): Members {
  const [name = '', ...below] = path.split('.');
  return { id: 'one', [name]: below.length === 0 ? value : holding(below.join('.'), value) };
}

const display = [{ name: 'Acme', locale: 'en' }];
/** Documents of the kinds of which there are warnings; those are for whole ones. */
const WHOLE: { readonly [kind in EditedKind]?: object } = {
  'issuance-configuration': IssuanceConfigurationBody.parse({ display }),
  'credential-configuration': CredentialConfigurationBody.parse({
    id: 'one',
    config: { format: 'dc+sd-jwt', display },
  }),
  'presentation-configuration': PresentationConfigurationBody.parse({
    id: 'one',
    dcql_query: { credentials: [{ id: 'a', format: 'dc+sd-jwt', meta: { vct_values: ['urn:a'] } }] },
  }),
};

class Answering {
  result: unknown;
  async execute() {
    return this.result;
  }
}

/** What each route of the kind shows of this document, as the first of a list where it lists. */
async function shownBy(kind: EditedKind, document: Members): Promise<readonly string[]> {
  const useCase = new Answering();
  const find = (() => useCase) as unknown as Find;
  const routes = resourceRoutes({
    ...{ kind, tag: 'Any', path: '/any', access: { anyOf: [] }, view: z.unknown() },
    params: z.object({ id: z.string() }),
    get: Answering as never,
    toView: (resource) => resource,
    stored: () => WHOLE[kind] ?? {},
  });
  const written = { by: Answering as never, summary: '', body: z.unknown(), example: {} };
  const families = [
    routes.list({ by: Answering as never, summary: '' }),
    routes.get({ summary: '' }),
    routes.create(written),
    routes.replace(written),
    routes.update(written),
  ];
  const all: readonly Route[] = families.flatMap((family) => family(find));
  return Promise.all(
    all.map(async (route, index) => {
      useCase.result = index === 0 ? [document] : document;
      const given = { caller: {}, params: { id: 'one' }, query: {}, body: {} };
      const reply = (await route.handle(given as never)) as unknown as { readonly json: unknown };
      const { warnings: _warnings, ...shown } = (
        index === 0 ? (reply.json as unknown[])[0] : reply.json
      ) as Members;
      return JSON.stringify(shown);
    }),
  );
}

describe('The routes of a resource', () => {
  const secrets = RESOURCES.flatMap((resource) =>
    'edited' in resource && 'secrets' in resource
      ? Object.keys(resource.secrets).map((path) => [resource.kind as EditedKind, path] as const)
      : [],
  );

  it('are there for kinds with secrets', () => {
    expect(secrets.length).to.be.above(5);
  });
  for (const [kind, path] of secrets) {
    it(`never show ${path} of a ${kind}, and show that there is none`, async () => {
      const shown = await shownBy(kind, holding(path, 'a secret'));
      expect(shown).to.have.length(5);
      expect(new Set(shown)).to.deep.equal(new Set([JSON.stringify(holding(path, '***'))]));
      for (const none of [null, '']) {
        const document = holding(path, none);
        expect(new Set(await shownBy(kind, document))).to.deep.equal(new Set([JSON.stringify(document)]));
      }
    });
  }
});
