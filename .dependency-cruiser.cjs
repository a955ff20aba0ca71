/** The layers: domain, application, adapters, bootstrap; dependencies point inwards. */
const builtins = (...names) => `^(node:)?(${names.join('|')})$`;

module.exports = {
  forbidden: [
    {
      name: 'no-cycles',
      comment: 'Imports of types count: what describes each other cannot be read or changed apart.',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'domain-is-pure',
      comment: 'The domain knows no other layer.',
      severity: 'error',
      from: { path: '^domain/' },
      to: { path: '^(application|adapters|bootstrap|config|test)/' },
    },
    {
      name: 'domain-packages',
      comment: 'zod describes documents of the protocols; nothing else comes from outside.',
      severity: 'error',
      from: { path: '^domain/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-no-pkg', 'npm-unknown'], pathNot: 'node_modules/zod/' },
    },
    {
      name: 'domain-builtins',
      comment: 'Hashes and synchronous codecs only.',
      severity: 'error',
      from: { path: '^domain/' },
      to: { dependencyTypes: ['core'], pathNot: builtins('crypto', 'zlib') },
    },
    {
      name: 'application-is-inside',
      severity: 'error',
      from: { path: '^application/' },
      to: { path: '^(adapters|bootstrap|config|test)/' },
    },
    {
      name: 'application-packages',
      comment: 'zod for input schemas, lru-cache for bounded memory.',
      severity: 'error',
      from: { path: '^application/' },
      to: { dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-no-pkg', 'npm-unknown'], pathNot: 'node_modules/(zod|lru-cache)/' },
    },
    {
      name: 'application-builtins',
      comment: 'Hashes, codecs and their promise forms; everything that reaches the world is a port.',
      severity: 'error',
      from: { path: '^application/' },
      to: { dependencyTypes: ['core'], pathNot: builtins('crypto', 'zlib', 'util') },
    },
    { name: 'adapters-are-inside', severity: 'error', from: { path: '^adapters/' }, to: { path: '^(bootstrap|config|test)/' } },
    {
      name: 'adapter-families-do-not-meet',
      severity: 'error',
      from: { path: '^adapters/([^/]+)/' },
      to: { path: '^adapters/([^/]+)/', pathNot: '^adapters/$1/' },
    },
    { name: 'only-bootstrap-wires', severity: 'error', from: { pathNot: '^bootstrap/' }, to: { path: 'node_modules/inversify/' } },
    {
      name: 'config-reads-nothing-else',
      severity: 'error',
      from: { path: '^config/' },
      to: { path: '^(application|adapters|bootstrap|test)/' },
    },
    {
      name: 'attack-tool-is-independent',
      comment:
        'It attacks issuers and verifiers of any product, so it shares encodings with the simulated wallet and nothing with the service.',
      severity: 'error',
      from: { path: '^packages/attack/src/' },
      to: {
        path: '^(domain|application|adapters|bootstrap|config|test|tools)/|^packages/(client|console)/|^packages/wallet/src/(?!core/formats/)',
      },
    },
    {
      name: 'attack-tool-packages',
      comment: 'It is shipped, so its packages are those of production, and few.',
      severity: 'error',
      from: { path: '^packages/attack/src/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-no-pkg', 'npm-unknown'],
        pathNot: 'node_modules/(jose|@peculiar/x509|reflect-metadata)/',
      },
    },
    {
      name: 'client-stands-alone',
      comment: 'Backends and browsers have it without the service, so it knows the interface and nothing behind it.',
      severity: 'error',
      from: { path: '^packages/client/src/' },
      to: { pathNot: '^packages/client/src/' },
    },
    {
      name: 'simulated-wallet-is-independent',
      comment: 'What it accepts is evidence only while it shares nothing with the service.',
      severity: 'error',
      from: { path: '^packages/wallet/src/' },
      to: { path: '^(domain|application|adapters|bootstrap|config|test|tools)/|^packages/(attack|client|console)/' },
    },
    {
      name: 'simulated-wallet-runs-in-browsers',
      severity: 'error',
      from: { path: '^packages/wallet/src/core/' },
      to: { dependencyTypes: ['core'] },
    },
    {
      name: 'shared-formats-are-small',
      comment: 'The console and the attack tool have them as well, without the packages of the wallet.',
      severity: 'error',
      from: { path: '^packages/wallet/src/core/formats/' },
      to: { pathNot: '^packages/wallet/src/core/formats/|node_modules/cborg/' },
    },
    {
      name: 'console-is-a-program-of-browsers',
      comment:
        'It knows the public interface, as any other program does: the client and the simulated wallet. Of the service it has the texts about errors only.',
      severity: 'error',
      from: { path: '^packages/console/src/' },
      to: {
        path: '^(domain|application|adapters|bootstrap|config|test|tools)/|^packages/attack/|^packages/wallet/src/(?!core/)',
        pathNot: '^domain/shared/error-reference\\.ts$',
      },
    },
    {
      name: 'error-reference-is-data',
      comment: 'The console bundles it, so it imports nothing but types and the texts.',
      severity: 'error',
      from: { path: '^domain/shared/error-reference\\.' },
      to: { dependencyTypesNot: ['type-only'], pathNot: '^domain/shared/errors/' },
    },
    {
      name: 'console-packages',
      comment: 'Bundled, so they are packages of developers; few, since people wait for them.',
      severity: 'error',
      from: { path: '^packages/console/src/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-no-pkg', 'npm-unknown', 'core'],
        pathNot: 'node_modules/(preact|@preact|@picocss|uqr)/',
      },
    },
    {
      name: 'service-needs-no-tests-and-packages',
      severity: 'error',
      from: { path: '^(domain|application|adapters|bootstrap|config)/' },
      to: { path: '^(packages|test|tools)/|node_modules/(@openid4vc|@owf|dcql|oidc-provider)/' },
    },
  ],
  options: { parser: 'swc', tsPreCompilationDeps: true, doNotFollow: { path: 'node_modules' }, exclude: { path: '^dist/' } },
};
