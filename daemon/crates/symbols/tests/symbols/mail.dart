import 'dart:async';

part 'mail.g.dart';

const int maxTries = 3;
final queue = <String>[];
int sent = 0;

typedef Handler<T> = Future<void> Function(T value);

enum Priority {
  low(1),
  high(2);

  const Priority(this.weight);
  final int weight;

  String get label => name.toUpperCase();
  static Priority of(int weight) =>
      values.firstWhere((p) => p.weight == weight);
}

// class NotCode {}
@immutable
abstract class Outcome {
  const Outcome();
  String describe();
}

class Sent extends Outcome implements Comparable<Sent> {
  Sent(this.id, {required this.to}) : super();

  Sent.empty()
      : id = 0,
        to = '';

  factory Sent.parse(Map<String, dynamic> json) {
    return Sent(json['id'] as int, to: "${json["to"]} }");
  }

  final int id;
  final String to;
  static final cache = build({'a': 1});
  void Function(int)? listener;

  @override
  String describe() => 'sent $id';

  set handler(void Function() value) {
    value();
  }

  int get size {
    return to.length;
  }

  @Deprecated('use other')
  Future<List<T>> retry<T extends Object>(int times, {T? last}) async {
    for (var i = 0; i < times; i++) {
      int step(int n) {
        return n * 2;
      }
      print(step(i));
    }
    return [];
  }

  @override
  bool operator ==(Object other) => other is Sent;

  @override
  int compareTo(Sent other) {
    return id.compareTo(other.id);
  }
}

mixin Loud on Outcome {
  void shout() {
    print('''
class InString {
''');
  }
}

mixin class Quiet {}

extension Letters on String {
  bool get isLetter => length > 0;
  String twice() => this + this;
}

extension type Id(int value) {
  Id next() => Id(value + 1);
}

external int nativeSend(String letter);

Future<void> main(List<String> args) async {
  if (args.isEmpty) {
    return;
  }
  await send(Sent.empty());
}

Stream<int> count() async* {
  yield 1;
}
