import { globSync } from 'node:fs';
import { expect } from 'chai';
import type { Token, Tokens } from '../../application/needs.ts';
import { collectRoutes } from '../../bootstrap/wiring/routes.ts';
import { obtain } from '../../bootstrap/wiring/wire.ts';
import { RESERVED_TENANT_IDS } from '../../domain/tenants/tenant.ts';
import { startTestService, type TestService } from '../support/test-service.ts';

const ROOT = new URL('../../', import.meta.url);

type TypeWithNeeds = Token & { readonly needs: Tokens; readonly name: string };

async function exportedBy(pattern: string): Promise<unknown[]> {
  const files = globSync(pattern, { cwd: ROOT });
  const modules = await Promise.all(files.map((file) => import(new URL(file, ROOT).href)));
  return modules.flatMap((module: object) => Object.values(module));
}

const isClass = (value: unknown): value is TypeWithNeeds => typeof value === 'function' && /^class/.test(`${value}`);

describe('dependency injection', () => {
  let service: TestService;
  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  it('reserves every path of the service, so that no tenant id uses it', () => {
    const segments = collectRoutes(service.service.container)
      .map(({ path }) => path.split('/')[1] ?? '')
      .filter((segment) => segment !== '' && !segment.startsWith(':') && !segment.startsWith('.'));
    const unreserved = segments.filter((segment) => !RESERVED_TENANT_IDS.has(segment.split('.')[0] ?? ''));
    expect(segments).to.include.members(['issuer', 'verifier', 'session']);
    expect([...new Set(unreserved)], 'to be added to RESERVED_TENANT_IDS').to.deep.equal([]);
  });

  it('creates every injectable class with all its dependencies', async () => {
    const { container } = service.service;
    const typesWithNeeds = (await exportedBy('application/**/*.ts')).filter(isClass).filter((type) => 'needs' in type);
    expect(typesWithNeeds.length).to.be.above(100);
    const unresolvable = typesWithNeeds.flatMap((type) => {
      try {
        const instance = obtain<unknown>(container, type) as { readonly ports: object };
        const missing = Object.entries(instance.ports).filter(([, port]) => port === undefined);
        return missing.map(([name]) => `${type.name}: ${name}`);
      } catch (error) {
        return [`${type.name}: ${(error as Error).message}`];
      }
    });
    expect(unresolvable).to.deep.equal([]);
  });
});
