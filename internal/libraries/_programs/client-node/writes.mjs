import * as k8s from '@kubernetes/client-node';
import { input, labelled, parseResource, state } from './names.mjs';

function check(was, want, what) {
  if (was !== want) {
    throw new Error(`${what}: the object has ${JSON.stringify(was)}, not ${JSON.stringify(want)}`);
  }
}

// object creates, reads, lists, replaces and patches an object of any kind with KubernetesObjectApi,
// which asks the list of the group version for the resource of the kind.
export async function object(config, name) {
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  const wanted = await input();
  await client.create(wanted);
  const read = await client.read(wanted);
  check(read.metadata.name, name, 'read');
  const all = await client.list(wanted.apiVersion, wanted.kind, wanted.metadata.namespace);
  check(all.items.some((o) => o.metadata.name === name), true, 'list');
  const replaced = await client.replace(labelled(read, 'updated'));
  check(replaced.metadata.labels[state], 'updated', 'replace');
  const { apiVersion, kind } = wanted;
  const patch = labelled({ apiVersion, kind, metadata: { name } }, 'patched');
  const patched = await client.patch(patch, undefined, undefined, undefined, undefined, k8s.PatchStrategy.MergePatch);
  check(patched.metadata.labels[state], 'patched', 'patch');
  console.log(`written ${name} patched`);
}

// apply applies the object twice on the server's side.
export async function apply(config) {
  const client = k8s.KubernetesObjectApi.makeApiClient(config);
  const wanted = await input();
  for (const spec of [wanted, labelled(wanted, 'applied')]) {
    const got = await client.patch(spec, undefined, undefined, 'client-node', true, k8s.PatchStrategy.ServerSideApply);
    console.log(`state ${got.metadata.labels[state]}`);
  }
}

// custom does what object does, by the path of the resource, as for custom resources.
export async function custom(config, resource, name) {
  const client = config.makeApiClient(k8s.CustomObjectsApi);
  const of = parseResource(resource);
  await client.createClusterCustomObject({ ...of, body: await input() });
  const read = await client.getClusterCustomObject({ ...of, name });
  const all = await client.listClusterCustomObject(of);
  check(all.items.some((o) => o.metadata.name === name), true, 'list');
  const replaced = await client.replaceClusterCustomObject({ ...of, name, body: labelled(read, 'updated') });
  check(replaced.metadata.labels[state], 'updated', 'replace');
  const patched = await client.patchClusterCustomObject(
    { ...of, name, body: { metadata: { labels: { [state]: 'patched' } } } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.MergePatch),
  );
  check(patched.metadata.labels[state], 'patched', 'patch');
  console.log(`written ${name} patched`);
}

// typed does the same with a ConfigMap and the class of its version, and deletes it.
export async function typed(config, namespace, name) {
  const client = config.makeApiClient(k8s.CoreV1Api);
  const body = { metadata: { name, labels: { [state]: 'made' } }, data: { a: '1' } };
  await client.createNamespacedConfigMap({ namespace, body });
  const read = await client.readNamespacedConfigMap({ namespace, name });
  const replaced = await client.replaceNamespacedConfigMap({ namespace, name, body: labelled(read, 'updated') });
  check(replaced.metadata.labels[state], 'updated', 'replace');
  const patched = await client.patchNamespacedConfigMap(
    { namespace, name, body: { data: { b: '2' } } },
    k8s.setHeaderOptions('Content-Type', k8s.PatchStrategy.StrategicMergePatch),
  );
  check(patched.data.b, '2', 'patch');
  const all = await client.listNamespacedConfigMap({ namespace });
  check(all.items.some((o) => o.metadata.name === name), true, 'list');
  await client.deleteNamespacedConfigMap({ namespace, name });
  console.log(`written and deleted ${name}`);
}
