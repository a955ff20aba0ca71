import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'chai';
import { parseAllDocuments } from 'yaml';
import { isSetting } from '../../config/settings.ts';
import { REQUIRED_VALUES, VALUES, writeSchemas } from '../support/kubernetes.ts';

const TOOLS = process.env['DEPLOY_TOOLS'] ?? join(homedir(), '.cache/vidimus-tools');
const CHART = fileURLToPath(new URL('../../deploy/helm/vidimus/', import.meta.url));
const KUBERNETES = ['--kube-version', '1.34.0'];
/** The API document of Kubernetes. */
const KINDS = [
  ...['StatefulSet', 'Service', 'ServiceAccount', 'ConfigMap', 'Ingress'],
  ...['NetworkPolicy', 'PodDisruptionBudget', 'HorizontalPodAutoscaler'],
];
type Manifest = { readonly kind: string; readonly metadata: { readonly name: string }; readonly spec: Readonly<Record<string, unknown>> };

type Egress = {
  readonly to?: readonly { readonly ipBlock?: { readonly cidr: string } }[];
  readonly ports: readonly { readonly port: number }[];
};

describe('Helm chart', function () {
  this.timeout(60_000);
  let folder: string;

  before(function () {
    if (!existsSync(join(TOOLS, 'swagger.json'))) {
      if (process.env['CI'] === 'true') throw new Error('CI needs Helm: test/deploy/install-tools.sh');
      console.log(`    Helm is skipped: test/deploy/install-tools.sh ${TOOLS} brings what it needs`);
      return this.skip();
    }
    folder = mkdtempSync(join(tmpdir(), 'vidimus-helm-'));
    writeSchemas(join(TOOLS, 'swagger.json'), join(folder, 'schemas'), KINDS);
  });
  after(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  });

  const run = (tool: string, args: readonly string[], input?: string): { failed: boolean; output: string } => {
    try {
      const options = { encoding: 'utf8', stdio: 'pipe', input: input ?? '' } as const;
      const env = { PATH: process.env['PATH'], HOME: folder, HELM_CACHE_HOME: folder };
      return { failed: false, output: execFileSync(join(TOOLS, tool), args, { ...options, env }) };
    } catch (error) {
      const { stdout, stderr } = error as { stdout: string; stderr: string };
      return { failed: true, output: stdout + stderr };
    }
  };
  const withValues = (values: object): string[] => {
    const file = join(folder, 'values.json');
    writeFileSync(file, JSON.stringify({ ...REQUIRED_VALUES, ...values }));
    return ['--values', file];
  };
  const template = (values: object = {}) =>
    run('helm', ['template', 'acme', CHART, ...KUBERNETES, '--namespace', 'id', ...withValues(values)]);
  const conform = (text: string, extraArgs: readonly string[] = []) => {
    const location = `${join(folder, 'schemas')}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
    return run('kubeconform', ['-strict', '-summary', '-schema-location', location, ...extraArgs], text);
  };
  const manifests = (values: object = {}) => {
    const { failed, output } = template(values);
    expect(failed, output).to.equal(false);
    return parseAllDocuments(output).map((document) => document.toJS() as Manifest);
  };
  const statefulSet = (values: object = {}) =>
    manifests(values).find(({ kind }) => kind === 'StatefulSet') as unknown as { metadata: { name: string }; spec: StatefulSetSpec };

  for (const [description, values] of Object.entries({ ...VALUES, everything: Object.assign({}, ...Object.values(VALUES)) as object })) {
    it(`is valid for Kubernetes with ${description}`, () => {
      const linted = run('helm', ['lint', '--strict', CHART, ...KUBERNETES, ...withValues(values)]);
      expect(linted.failed, linted.output).to.equal(false);
      const { failed, output } = template(values);
      expect(failed, output).to.equal(false);
      // Those of the operator of Prometheus are no part of Kubernetes; they are looked at below.
      const conformed = conform(output, ['-skip', 'ServiceMonitor,PrometheusRule']);
      expect(conformed.failed, conformed.output).to.equal(false);
      expect(conformed.output).to.match(/Valid: [1-9]\d*, Invalid: 0, Errors: 0/);
    });
  }

  it('is validated strictly: an unknown field is rejected', () => {
    const { output } = template();
    for (const [originalText, invalidText] of [
      ['readOnlyRootFilesystem: true', 'readOnlyRootFileSystem: true'],
      ['podManagementPolicy: Parallel', 'podManagementPolicies: Parallel'],
      ['policyTypes:', 'policyTipes:'],
    ] as const) {
      expect(output).to.include(originalText);
      expect(conform(output.replace(originalText, invalidText)).failed, invalidText).to.equal(true);
    }
  });

  it('accepts the values of docs/guides/kubernetes.md', () => {
    const page = readFileSync(new URL('../../docs/guides/kubernetes.md', import.meta.url), 'utf8');
    const commands = [...page.replaceAll(/ \\\n */g, ' ').matchAll(/^helm (?:install|upgrade) (vidimus .*)$/gm)];
    expect(commands).to.have.length(2);
    const [installed = '', upgraded = ''] = commands.map(([, helmArgs = '']) =>
      helmArgs
        .replace('deploy/helm/vidimus', CHART)
        .replace('sha256:…', `sha256:${'0'.repeat(64)}`)
        .replace(/=deploy\//, `=${join(CHART, '../../')}`),
    );
    // What is upgraded has the values of before.
    const bothSets = `${installed} ${upgraded.replace(/^vidimus \S+ --reuse-values /, '')}`;
    for (const helmArgs of [installed, bothSets]) {
      const { failed, output } = run('helm', ['template', ...helmArgs.split(' '), ...KUBERNETES]);
      expect(failed, output).to.equal(false);
      expect(output).to.include(`registry.acme.example/vidimus@sha256:000`);
    }
  });

  it('rejects values that cannot work, or that contain a secret', () => {
    for (const [description, values] of [
      ['no secret', { existingSecret: '' }],
      ['no public address', { settings: {} }],
      ['an address without TLS', { settings: { PUBLIC_URL: 'http://id.acme.example' } }],
      ['a secret among the settings', { settings: { ...REQUIRED_VALUES.settings, MASTER_SECRET: 'x' } }],
      ['a database among the settings', { settings: { ...REQUIRED_VALUES.settings, DATABASE_URL: 'x' } }],
      ['a setting that is a number', { settings: { ...REQUIRED_VALUES.settings, DATABASE_POOL: 10 } }],
      ['a digest that is none', { image: { repository: 'v', digest: 'latest' } }],
      // Of Kubernetes an empty list is everybody.
      ['no allowed callers', { networkPolicy: { from: [] } }],
      ['no allowed readers of metrics', { networkPolicy: { metricsFrom: [] }, metrics: { enabled: true } }],
      ['a misspelt value', { replica: 2 }],
      ['the user root', { podSecurityContext: { runAsUser: 0 } }],
      ['a pod that may run as root', { podSecurityContext: { runAsNonRoot: false } }],
      ['a volume without a size', { persistence: { size: 'small' } }],
      ['a misspelt value of the volume', { persistence: { class: 'ssd' } }],
      ['an ingress without a host', { ingress: { enabled: true } }],
      ['rules that are missing', { metrics: { enabled: true, prometheusRule: { enabled: true } } }],
    ] as const)
      expect(template(values).failed, description).to.equal(true);
  });

  it('runs without root and without privileges, and writes into two volumes only', () => {
    const { containers, securityContext, volumes, automountServiceAccountToken: token } = statefulSet().spec.template.spec;
    expect(securityContext).to.include({ runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000 });
    expect(securityContext['seccompProfile']).to.deep.equal({ type: 'RuntimeDefault' });
    expect(containers[0]?.securityContext).to.deep.equal({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ['ALL'] },
    });
    expect(volumes.map(({ name }) => name)).to.deep.equal(['tmp']);
    expect(containers[0]?.volumeMounts).to.deep.equal([
      { name: 'data', mountPath: '/data' },
      { name: 'tmp', mountPath: '/tmp' },
    ]);
    expect(token).to.equal(false);
  });

  it('allows the service DNS, https and private networks, and no other port', () => {
    const [policy] = manifests().filter(({ kind }) => kind === 'NetworkPolicy');
    const egress = policy?.spec['egress'] as Egress[];
    for (const { to = [], ports } of egress) {
      expect(to, JSON.stringify(ports)).to.not.deep.equal([]);
      const isOpen = to.some(({ ipBlock }) => ipBlock?.cidr === '0.0.0.0/0' || ipBlock?.cidr === '::/0');
      if (isOpen) expect(ports.map(({ port }) => port)).to.deep.equal([443]);
    }
  });

  it('leaves user and groups to OpenShift when they are null, and still runs without root', () => {
    const none = { runAsUser: null, runAsGroup: null, fsGroup: null };
    const { securityContext } = statefulSet({ podSecurityContext: none }).spec.template.spec;
    expect(securityContext).to.deep.equal({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
  });

  it('probes liveness and readiness separately, and lets running requests finish', () => {
    const { containers, terminationGracePeriodSeconds: grace } = statefulSet().spec.template.spec;
    const [container] = containers;
    expect(container?.livenessProbe.httpGet.path).to.equal('/health/live');
    expect(container?.startupProbe.httpGet.path).to.equal('/health/live');
    expect(container?.readinessProbe.httpGet.path).to.equal('/health/ready');
    const drains = Number(container?.env.find(({ name }) => name === 'DRAIN_SECONDS')?.value);
    expect(grace).to.be.greaterThan(drains + 10);
  });

  it('has only known settings, references secrets, and restarts when the key configuration changes', () => {
    const { containers } = statefulSet({ ...VALUES['metrics'], ...VALUES['keys in Vault'] }).spec.template.spec;
    for (const { name, value } of containers[0]?.env ?? []) {
      expect(isSetting(name), name).to.equal(true);
      expect(value, name).to.be.a('string');
    }
    expect(containers[0]?.envFrom).to.deep.equal([{ secretRef: { name: 'vidimus' } }]);
    const annotations = (values: object) => JSON.stringify(statefulSet(values)).match(/"checksum\/kms":"(\w+)"/)?.[1];
    expect(annotations({})).to.not.equal(annotations(VALUES['keys in Vault'] ?? {}));
  });

  it('gives each pod a persistent volume for /data, of the default class unless another one is named', () => {
    const volumeClaim = (values: object = {}) => statefulSet(values).spec.volumeClaimTemplates?.[0];
    // Values of a release before, which --reuse-values takes, have no persistence.
    for (const values of [{}, { persistence: null }])
      expect(volumeClaim(values)).to.deep.include({
        metadata: { name: 'data', labels: { 'app.kubernetes.io/name': 'vidimus', 'app.kubernetes.io/instance': 'acme' } },
        spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
      });
    expect(volumeClaim({ persistence: { storageClass: 'ssd', size: '2Gi' } })?.spec).to.deep.equal({
      accessModes: ['ReadWriteOnce'],
      storageClassName: 'ssd',
      resources: { requests: { storage: '2Gi' } },
    });
    const { volumeClaimTemplates, template } = statefulSet({ persistence: { enabled: false } }).spec;
    expect(volumeClaimTemplates).to.equal(undefined);
    expect(template.spec.volumes[0]).to.deep.equal({ name: 'data', emptyDir: { sizeLimit: '64Mi' } });
  });

  it('keeps the volumes of pods that are scaled down, so that scaling to zero before a restore loses no record', () => {
    expect(statefulSet().spec.persistentVolumeClaimRetentionPolicy).to.deep.equal({ whenScaled: 'Retain', whenDeleted: 'Retain' });
    const { spec } = statefulSet({ persistence: { enabled: false } });
    expect(spec.persistentVolumeClaimRetentionPolicy).to.equal(undefined);
  });

  it('starts all pods in parallel, and scales its StatefulSet', () => {
    const allManifests = manifests(VALUES['as many as are needed']);
    const { metadata, spec } = statefulSet(VALUES['as many as are needed']);
    expect([spec.podManagementPolicy, spec.updateStrategy]).to.deep.equal(['Parallel', { type: 'RollingUpdate' }]);
    const scaler = allManifests.find(({ kind }) => kind === 'HorizontalPodAutoscaler');
    expect(scaler?.spec['scaleTargetRef']).to.deep.equal({ apiVersion: 'apps/v1', kind: 'StatefulSet', name: metadata.name });
    const names = allManifests.filter(({ kind }) => kind === 'Service').map((service) => service.metadata.name);
    expect(names).to.include(spec.serviceName);
  });

  it('leaves the number of processes to the autoscaler', () => {
    expect(statefulSet().spec.replicas).to.equal(2);
    expect(statefulSet(VALUES['as many as are needed']).spec.replicas).to.equal(undefined);
  });

  it('serves metrics on a port without an ingress', () => {
    const allManifests = manifests({ ...VALUES['metrics'], ...VALUES['an ingress'] });
    const manifestsOf = (kind: string) => allManifests.filter((manifest) => manifest.kind === kind);
    const [monitor] = manifestsOf('ServiceMonitor');
    if (monitor === undefined) throw new Error('there is no ServiceMonitor');
    expect(monitor.spec['endpoints']).to.deep.equal([{ port: 'metrics', path: '/metrics', interval: '30s' }]);
    const { matchLabels } = monitor.spec['selector'] as { matchLabels: object };
    const chosen = manifestsOf('Service').filter(({ metadata }) =>
      Object.entries(matchLabels).every(([name, value]) => (metadata as { labels?: Record<string, string> }).labels?.[name] === value),
    );
    expect(chosen.map(({ metadata }) => metadata.name)).to.deep.equal(['acme-metrics']);
    expect(JSON.stringify(manifestsOf('Ingress'))).to.not.include('metrics');
    expect(manifestsOf('PrometheusRule')[0]?.spec).to.deep.equal({
      groups: [{ name: 'vidimus', rules: [{ alert: 'Down', expr: 'up == 0', for: '1m' }] }],
    });
    const alerts = new URL('../../deploy/alerts.yaml', import.meta.url);
    if (!existsSync(alerts)) return;
    const rules = readFileSync(alerts, 'utf8');
    const [shipped] = manifests({ metrics: { enabled: true, prometheusRule: { enabled: true, rules } } }).filter(
      ({ kind }) => kind === 'PrometheusRule',
    );
    expect(shipped?.spec['groups']).to.be.an('array').that.is.not.empty;
  });

  it('has the version of the release', () => {
    const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string };
    const chart = readFileSync(join(CHART, 'Chart.yaml'), 'utf8');
    expect(chart).to.include(`\nversion: ${version}\n`).and.to.include(`\nappVersion: ${version}\n`);
  });
});

type Probe = { readonly httpGet: { readonly path: string } };
type StatefulSetSpec = {
  readonly replicas?: number;
  readonly serviceName: string;
  readonly podManagementPolicy: string;
  readonly updateStrategy: object;
  readonly persistentVolumeClaimRetentionPolicy?: object;
  readonly volumeClaimTemplates?: readonly { readonly metadata: object; readonly spec: object }[];
  readonly template: { readonly spec: PodSpec };
};
type PodSpec = {
  readonly automountServiceAccountToken: boolean;
  readonly terminationGracePeriodSeconds: number;
  readonly securityContext: Readonly<Record<string, unknown>>;
  readonly volumes: readonly { readonly name: string }[];
  readonly containers: readonly {
    readonly securityContext: object;
    readonly env: readonly { readonly name: string; readonly value: string }[];
    readonly envFrom: readonly object[];
    readonly volumeMounts: readonly object[];
    readonly livenessProbe: Probe;
    readonly readinessProbe: Probe;
    readonly startupProbe: Probe;
  }[];
};
