/** Without these nothing is rendered. */
export const NEEDED = {
  existingSecret: 'vidimus',
  settings: { PUBLIC_URL: 'https://id.acme.example', TRUST_PROXY: '1' },
};
const RULES = 'groups:\n  - name: vidimus\n    rules:\n      - { alert: Down, expr: up == 0, for: 1m }\n';

/** What the chart is asked for, one thing after the other and all at once. */
export const VALUES: Readonly<Record<string, object>> = {
  'what is needed': {},
  'an image by its digest': {
    image: { repository: 'registry.acme.example/vidimus', digest: `sha256:${'a'.repeat(64)}` },
  },
  'one process': { replicas: 1, networkPolicy: { enabled: false }, podDisruptionBudget: { minAvailable: 1 } },
  'as many as are needed': { autoscaling: { enabled: true, minReplicas: 3, maxReplicas: 9 } },
  'volumes of a class of its own': { persistence: { storageClass: 'ssd', size: '2Gi' } },
  'no volumes': { persistence: { enabled: false } },
  'an ingress': {
    ingress: {
      enabled: true,
      className: 'nginx',
      host: 'id.acme.example',
      tlsSecret: 'tls',
      annotations: { a: 'b' },
    },
  },
  metrics: {
    metrics: {
      enabled: true,
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      prometheusRule: { enabled: true, rules: RULES, labels: { release: 'prometheus' } },
    },
  },
  'keys in Vault': {
    kms: {
      default: 'house',
      providers: {
        house: { type: 'vault', address: 'https://vault', auth: { method: 'kubernetes', role: 'v' } },
      },
    },
    serviceAccount: { create: true, name: 'issuer', automountToken: true, annotations: { a: 'b' } },
    extraVolumes: [{ name: 'ca', secret: { secretName: 'ca' } }],
    extraVolumeMounts: [{ name: 'ca', mountPath: '/etc/ssl/house', readOnly: true }],
  },
  'places of its own': {
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule' }],
    affinity: { podAntiAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [] } },
    podLabels: { team: 'id' },
    podAnnotations: { note: 'x' },
    priorityClassName: 'high',
    imagePullSecrets: [{ name: 'registry' }],
    serviceAccount: { create: false },
  },
};
